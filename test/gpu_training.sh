#!/bin/sh
# Trains the default train_copy for 200 steps on the CPU and on the GPU. Losses and weights must be equal.
#   test/gpu_training.sh build/train_copy
program=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
cd "$folder" || exit 1
passed=0
failed=0
for device in cpu cuda; do
  "$program" --device $device --name $device --steps 200 --stop-at 2 --quiet > $device.txt 2>&1
  status=$?
  [ $status -eq 0 ] && continue
  echo "FAIL 200 steps: --device $device ends with status $status"
  tail -n 6 $device.txt
  failed=$((failed + 1))
done
check() {  # NAME A B
  if [ -s "$2" ] && cmp -s "$2" "$3"; then
    echo "ok   200 steps: $1"
    passed=$((passed + 1))
  else
    echo "FAIL 200 steps: $1 differ on the CPU and on the GPU"
    diff "$2" "$3" | head -n 6
    failed=$((failed + 1))
  fi
}
grep '^weights' cpu.txt > cpu.weights
grep '^weights' cuda.txt > cuda.weights
check weights cpu.weights cuda.weights
for device in cpu cuda; do
  sed 's/,[^,]*$//' runs/$device/log.csv > $device.log  # without the seconds
done
check losses cpu.log cuda.log
cat cuda.weights
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
