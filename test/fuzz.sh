#!/bin/sh
# make fuzz: each parser of parsers.h under clang's libFuzzer, starting from test/corpus. Prints the number of inputs for each parser.
#   BUILD=build FUZZ_SECONDS=60 test/fuzz.sh
folder=${BUILD:-build}/fuzz
seconds=${FUZZ_SECONDS:-60}
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  clang++ -fsanitize=fuzzer -x c++ - -o /dev/null 2> /dev/null; then
  echo "clang++ -fsanitize=fuzzer is not installed here (Debian: clang and libclang-rt-14-dev)"
  exit 0
fi
sanitizers="-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -DPETROGLYPH_POISON -fsanitize=fuzzer-no-link"
${MAKE:-make} --no-print-directory BUILD="$folder" CXX=clang++ MPI=0 OPENMP=0 CXXFLAGS="$sanitizers" LDFLAGS=-fsanitize=fuzzer \
  "$folder/test/fuzz" || exit 1
passed=0
failed=0
for parser in $(ls test/corpus); do
  mkdir -p "$folder/corpus/$parser"
  PETROGLYPH_FUZZ=$parser "$folder/test/fuzz" -max_total_time="$seconds" -max_len=8192 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$folder/$parser-" "$folder/corpus/$parser" "test/corpus/$parser" > "$folder/$parser.log" 2>&1
  status=$?
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$parser.log")
  if [ $status -eq 0 ] && [ -n "$inputs" ]; then
    echo "ok   $parser: $inputs inputs in $seconds s"
    passed=$((passed + 1))
  else
    echo "FAIL $parser: see $folder/$parser.log"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
