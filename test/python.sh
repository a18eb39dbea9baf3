#!/bin/sh
# Runs test/python/*.py, each of which skips what is not installed; without python3 there is nothing to run.
#   test/python.sh BUILD_FOLDER
passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log" "$log.errors"' EXIT
trap 'exit 1' HUP INT TERM
if ! python3 -c '' 2>/dev/null; then
  echo "skip Python's models: no python3 here"
  echo "0 passed, 0 failed"
  exit 0
fi
for script in test/python/*.py; do
  python3 "$script" "$1" > "$log" 2>"$log.errors"
  status=$?
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  grep -vE '^[0-9]+ passed, [0-9]+ failed$' "$log"
  if [ -z "$counts" ]; then
    echo "FAIL $script: ended with status $status and no count"
    tail -n 3 "$log.errors"
    counts="0 passed, 1 failed"
  elif [ "$status" -ne 0 ] && [ "${counts#*, }" = "0 failed" ]; then
    echo "FAIL $script: ended with status $status"
    counts="${counts%%,*}, 1 failed"
  fi
  rm -f "$log.errors"
  passed=$((passed + ${counts%% *}))
  of_these=${counts#*, }
  failed=$((failed + ${of_these%% *}))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
