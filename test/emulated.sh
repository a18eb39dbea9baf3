#!/bin/sh
# A short training by another processor's build under qemu's emulation must give this machine's weights.
#
#   test/emulated.sh PROCESSOR BUILD PROGRAM      aarch64 build/aarch64 build/train_copy
set -u
processor=$1 other=$(realpath "$2")/train_copy here=$(realpath "$3") passed=0 failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
cd "$folder" || exit 1
words="--length 6 --width 48 --layers 2 --batch 8 --steps 12 --eval-samples 8 --eval-every 6 --stop-at 2 --shards 2 --quiet"
expected=$("$here" $words --name here | sed -n 's/^weights //p')
for threads in 1 2; do
  found=$(qemu-$processor "$other" $words --name "by$threads" --threads $threads | sed -n 's/^weights //p')
  if [ -n "$expected" ] && [ "$found" = "$expected" ]; then
    passed=$((passed + 1))
  else
    echo "FAIL train_copy, $threads threads: $found, expected $expected"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
