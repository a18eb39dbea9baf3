#!/bin/sh
# No flag of the user's changes a bit. -ffp-contract=fast is undone by the contract's flags behind it: the object stays the same, byte for
# byte. Flags for "fast" mathematics are refused by make, and by numerics.h where the compiler announces them by a macro.
#   test/unsafe_flags.sh g++
set -u
compiler=${*:-g++}
passed=0 failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
check() { # NAME STATUS
  if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAIL $1: $(tail -n 2 "$folder/log")"; fi
}
object() { # FOLDER VARIABLES…
  name=$1
  shift
  env -u MAKEFLAGS -u MAKELEVEL ${MAKE:-make} BUILD="$folder/$name" CXX="$compiler" MPI=0 CUDA=0 "$@" "$folder/$name/cpu/optimizer.o" > "$folder/log" 2>&1
}
object plain CXXFLAGS=
check "builds" $?
object contract CXXFLAGS="-ffp-contract=fast" && cmp "$folder/plain/cpu/optimizer.o" "$folder/contract/cpu/optimizer.o" > "$folder/log" 2>&1
check "-ffp-contract=fast: the same object" $?
for flag in -Ofast -ffast-math -funsafe-math-optimizations -fassociative-math -freciprocal-math -ffinite-math-only -fno-signed-zeros; do
  for variable in CXXFLAGS CPPFLAGS LDFLAGS; do
    ! object unsafe "$variable=-O2 $flag" && grep -q -- "$flag: this flag would change the weights" "$folder/log"
    check "$variable=$flag is refused" $?
  done
done
for macro in __FAST_MATH__ __ASSOCIATIVE_MATH__ __RECIPROCAL_MATH__ __NO_SIGNED_ZEROS__ __FINITE_MATH_ONLY__; do
  echo '#include "math/numerics.h"' | $compiler -std=c++17 -Isrc -U$macro -D$macro=1 -Wno-builtin-macro-redefined -fsyntax-only -x c++ - 2>&1 |
    tee "$folder/log" | grep -q 'error.*these compiler flags change results'
  check "numerics.h refuses $macro" $?
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
