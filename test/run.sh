#!/bin/sh
# Runs test programs one after another: their failures and skips in full, a line for each, and the sum at the end.
#   test/run.sh COMMAND…      each one a program or a quoted command line
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for command in "$@"; do
  start=$(date +%s)
  $command > "$log" 2>&1
  status=$?
  grep -vE '^ok |^[0-9]+ passed, [0-9]+ failed$' "$log"
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  if [ -z "$counts" ]; then
    echo "FAIL $command: ended with status $status and no count"
    failed=$((failed + 1))
  else
    passed=$((passed + ${counts%% *}))
    of_these=${counts#*, }
    failed=$((failed + ${of_these%% *}))
    if [ "$status" -ne 0 ] && [ "${of_these%% *}" -eq 0 ]; then
      echo "FAIL $command: ended with status $status"
      failed=$((failed + 1))
    fi
  fi
  echo "     $command: ${counts:-no count} ($(($(date +%s) - start)) s)"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
