#!/bin/sh
# The tests of another processor's build under qemu's emulation of its programs, and a short training that must give this machine's weights.
#
#   test/emulated.sh PROCESSOR BUILD PROGRAM      aarch64 build/aarch64 build/train_copy
set -u
processor=$1 build=$2 here=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
passed=0 failed=0
if ! command -v "qemu-$processor" > /dev/null || ! [ -x "$build/train_copy" ]; then
  echo "skip $processor: no $processor-linux-gnu-g++, or no qemu-$processor"
  echo "0 passed, 0 failed"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

tested() {  # PROGRAM; the counts are those of its last line
  qemu-$processor "$build/test/$1" > "$folder/log" 2>&1
  status=$?
  good=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$folder/log" | tail -n 1)
  wrong=$(sed -n 's/.* passed, \([0-9]*\) failed$/\1/p' "$folder/log" | tail -n 1)
  grep '^FAIL' "$folder/log"
  if [ "${good:-0}" -eq 0 ] || { [ "$status" -ne 0 ] && [ "${wrong:-0}" -eq 0 ]; }; then
    echo "FAIL $1: ended with status $status, ${good:-no} checks passed"
    wrong=$((${wrong:-0} + 1))
  fi
  passed=$((passed + ${good:-0}))
  failed=$((failed + wrong))
}
tested bits
tested oracle

program=$(cd "$build" && pwd)/train_copy
words="--length 6 --width 48 --layers 2 --batch 8 --steps 12 --eval-samples 8 --eval-every 6 --stop-at 2 --shards 2 --quiet"
expected=$(cd "$folder" && "$here" $words --name here | sed -n 's/^weights //p')
for threads in 1 2; do
  found=$(cd "$folder" && qemu-$processor "$program" $words --name "by$threads" --threads $threads | sed -n 's/^weights //p')
  if [ -n "$expected" ] && [ "$found" = "$expected" ]; then
    passed=$((passed + 1))
  else
    echo "FAIL train_copy, $threads threads: $found, expected $expected"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
