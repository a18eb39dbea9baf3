#!/bin/sh
# Runs the kernels under compute-sanitizer. It detects accesses out of range, races between threads of a block, barriers
# that not all threads reach, and reads of uninitialized memory.
#   test/gpu_sanitizer.sh build/test/gpu_run [TOOL…]      memcheck racecheck synccheck initcheck
# compute-sanitizer is also searched for in the directories around nvcc.
program=$1
shift
[ $# -gt 0 ] || set -- memcheck racecheck synccheck initcheck
if nvcc=$(command -v "${NVCC##* }" || command -v nvcc); then
  toolkit=$(dirname "$(realpath "$nvcc")")
  PATH=$PATH:$(dirname "$nvcc"):$toolkit:$toolkit/../compute-sanitizer
fi
if ! command -v compute-sanitizer > /dev/null; then
  echo "skip compute-sanitizer is not installed"
  echo "0 passed, 0 failed"
  exit 0
fi
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
trap 'exit 1' HUP INT TERM
passed=0
failed=0
for tool in "$@"; do
  for group in "models, GPU" "table, GPU"; do
    if compute-sanitizer --tool $tool --error-exitcode 9 "$program" "$group" > "$said" 2>&1; then
      echo "ok   $tool: $group"
      passed=$((passed + 1))
    else
      echo "FAIL $tool: $group"
      grep -e '=====' -e '^FAIL' "$said" | head -n 12  # the tool's words, and a comparison's
      failed=$((failed + 1))
    fi
  done
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
