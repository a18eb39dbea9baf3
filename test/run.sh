#!/bin/sh
# Runs test programs, three for two cores at a time: of each its failures and skips in full, a line when it ends, and the sum of all.
# Most of them take one core; some wait most of the time for processes that they started.
#   test/run.sh COMMAND…      each one a program or a quoted command line
#   TEST_JOBS=1 test/run.sh …       one after another
#   TEST_SECONDS=9 test/run.sh …    ends what takes longer; default: an hour each

# The Nth line of FOLDER/commands, with its counts into FOLDER/N.counts.
if [ "${1-}" = --one ]; then
  folder=$2
  number=$3
  command=$(sed -n "${number}p" "$folder/commands")
  log=$folder/$number.log
  limit=""
  # In the foreground: in a group of its own it would not hear Ctrl-C.
  timeout --foreground 9 true 2> /dev/null && limit="timeout --foreground -k 10 ${TEST_SECONDS:-3600}"
  start=$(date +%s)
  $limit $command > "$log" 2>&1
  status=$?
  skips=$(grep -c '^skip ' "$log")
  counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  failed=${counts#*, }
  failed=${failed%% *}
  report=$(grep -vE '^ok |^[0-9]+ passed, [0-9]+ failed$' "$log")
  wrong=""
  if [ -z "$counts" ]; then
    wrong="FAIL $command: ended with status $status and no count"
  elif [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
    wrong="FAIL $command: ended with status $status"
  elif [ "$counts" = "0 passed, 0 failed" ] && [ "$skips" -eq 0 ]; then
    wrong="FAIL $command: checked nothing"
  fi
  [ -z "$wrong" ] || failed=$((${failed:-0} + 1))
  counted=${counts:-0}
  echo "${counted%% *} $failed $skips" > "$folder/$number.counts"
  printf '%s' "${report:+$report
}${wrong:+$wrong
}     $(printf '%.100s' "$command"): ${counts:-no count} ($(($(date +%s) - start)) s)
"
  exit 0
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT TERM
for command in "$@"; do printf '%s\n' "$command"; done > "$folder/commands"
cores=$(nproc 2> /dev/null || sysctl -n hw.ncpu 2> /dev/null || echo 1)
jobs=${TEST_JOBS:-$((cores + cores / 2))}
seq $# | xargs -P "$jobs" -n 1 "$0" --one "$folder"
# A command that left none did not come to its end.
cat "$folder"/*.counts 2> /dev/null | awk -v commands=$# '
  { passed += $1; failed += $2; skipped += $3 }
  END {
    failed += commands - NR
    printf "%d passed, %d failed\n", passed, failed
    exit failed > 0 || (passed == 0 && skipped == 0)
  }'
