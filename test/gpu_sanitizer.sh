#!/bin/sh
# The kernels under compute-sanitizer: out-of-range accesses, races between threads of a block, barriers that not all reach, and
# reads of memory that nobody wrote.
#   test/gpu_sanitizer.sh build/test/gpu_run
if ! command -v compute-sanitizer > /dev/null; then
  echo "skip compute-sanitizer is not installed"
  echo "0 passed, 0 failed"
  exit 0
fi
passed=0
failed=0
for tool in memcheck racecheck synccheck initcheck; do
  for group in "models, GPU" "table, GPU"; do
    if compute-sanitizer --tool $tool --error-exitcode 9 "$1" "$group" > /tmp/sanitizer.$$ 2>&1; then
      echo "ok   $tool: $group"
      passed=$((passed + 1))
    else
      echo "FAIL $tool: $group"
      grep '=====' /tmp/sanitizer.$$ | head -n 12
      failed=$((failed + 1))
    fi
  done
done
rm -f /tmp/sanitizer.$$
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
