#!/bin/sh
# make storm: runs that are killed, processes that meet in one folder, files that are damaged, calls that fail. It takes minutes on an idle machine.
#   BUILD=build KILLS=3000 ROUNDS=300 DAMAGED=1000000 PLACES=4000 test/storm.sh
build=${BUILD:-build}
${MAKE:-make} --no-print-directory BUILD="$build" all "$build/test/storm" "$build/test/damage" "$build/test/ranks" \
  "$build/test/failing_calls" || exit 1
test/run.sh "$build/test/damage --files ${DAMAGED:-1000000}" "$build/test/storm --kills ${KILLS:-3000} --rounds ${ROUNDS:-300}" \
  "env PETROGLYPH_KILLS=50 $build/test/ranks killed" "$build/test/failing_calls --places ${PLACES:-4000}"
