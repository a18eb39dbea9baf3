#!/bin/sh
# Every operation of the catalogue is called by a row of test/cases.cpp, or, where it returns no numbers that a fingerprint is of, by the
# other file that is named here: what nobody calls is checked nowhere.
set -u
passed=0 failed=0
for operation in $(sed -n 's/^OP(.*[ *]\([a-z_0-9]*\)(.*/\1/p' src/ops/catalogue.h | sort -u); do
  case $operation in
  argmax) file=test/bits.cpp ;;
  *) file=test/cases.cpp ;;
  esac
  if grep -qE "[.>]$operation\(|&Ops::$operation\b" "$file"; then
    passed=$((passed + 1))
  else
    echo "FAIL $operation: $file has no row of it"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 50 ]
