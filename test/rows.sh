#!/bin/sh
# Every operation of the catalogue is called by a row of test/cases.cpp: what nobody calls is checked nowhere.
set -u
passed=0 failed=0
for operation in $(sed -n 's/^OP(.*[ *]\([a-z_0-9]*\)(.*/\1/p' src/ops/catalogue.h | sort -u); do
  if grep -qE "[.>]$operation\(|&Ops::$operation\b" test/cases.cpp; then
    passed=$((passed + 1))
  else
    echo "FAIL $operation: test/cases.cpp has no row of it"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 50 ]
