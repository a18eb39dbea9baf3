#!/bin/bash
# make test-all: the tests of `make test`, and bits and oracles again in every other build. Each build is compared with test/golden.txt.
#   BUILD=build test/all.sh
set -u
build=${BUILD:-build}
more=()        # the further tests; the longest first
skipped() { more+=("\"test/skip.sh $1\""); }

# NAME "TESTS" VARIABLES…: a build in its own folder and, of its tests, bits, oracle and those that are named.
builds() {
  local name=$1 tests=$2
  shift 2
  local targets=("$build/$name/train_copy")
  for test in $tests; do targets+=("$build/$name/test/$test"); done
  [[ $tests != *programs* ]] || targets+=(all)
  ${MAKE:-make} --no-print-directory BUILD="$build/$name" "$@" "${targets[@]}" || exit 1
  for test in $tests; do more+=("$build/$name/test/$test"); done
}
${MAKE:-make} --no-print-directory BUILD="$build" all || exit 1
sanitizers="-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -DPETROGLYPH_POISON"
# g++'s sanitizers make some of its warnings wrong.
builds sanitize "programs bits oracle files text_data exchange damage" CXXFLAGS="$sanitizers" MPI=0 WERROR=0
builds generic "bits oracle" ARCH=generic
builds O0 "bits oracle" CXXFLAGS=-O0
builds noopenmp "bits oracle" OPENMP=0
# Both: loops are then vectorised in other ways.
builds plain "bits oracle" ARCH=generic OPENMP=0
# Two threads that use one word without an order between them. The checker learns the order that tasks have from archer, a library of
# clang's OpenMP; g++'s OpenMP tells it nothing.
archer=$(clang++ -print-resource-dir 2> /dev/null)/../../libarcher.so
if [ -e "$archer" ]; then
  builds races "" CXX=clang++ CXXFLAGS="-g -O1 -fsanitize=thread" MPI=0 "$build/races/test/bits"
  more+=("\"env TSAN_OPTIONS=ignore_noninstrumented_modules=1:die_after_fork=0 OMP_TOOL_LIBRARIES=$archer $build/races/test/bits\"")
else
  skipped "races: clang++'s OpenMP with libarcher.so is not installed"
fi
if [[ $(${CXX:-g++} -dumpmachine) == x86_64* ]]; then
  builds v3 "bits oracle" ARCH=x86-64-v3
  builds oldest "bits oracle" ARCH=x86-64 OPENMP=0
else
  skipped "v3, oldest: only for x86-64"
fi
if command -v clang++ > /dev/null; then builds clang "bits oracle" CXX=clang++; else skipped "clang: there is no clang++"; fi
for processor in aarch64 riscv64; do
  if ! command -v $processor-linux-gnu-g++ > /dev/null || ! command -v qemu-$processor > /dev/null; then
    skipped "$processor: no $processor-linux-gnu-g++, or no qemu-$processor"
    continue
  fi
  # g++ 12 has no vectors for riscv64, and warns of every loop that requests them.
  ${MAKE:-make} --no-print-directory BUILD="$build/$processor" CXX=$processor-linux-gnu-g++ ARCH=generic CXXFLAGS=-O2 LDFLAGS=-static \
    MPI=0 CUDA=0 WERROR=0 "$build/$processor"/{test/bits,test/oracle,train_copy} || exit 1
  for test in bits oracle; do more+=("\"qemu-$processor $build/$processor/test/$test\""); done
  more+=("\"test/emulated.sh $processor $build/$processor $build/train_copy\"")
done

# The kernels' PTX for the other architectures that this nvcc knows.
nvcc=$(sed -n 's/^NVCC := //p' "$build/cuda.mk" 2> /dev/null)
for architecture in $(${nvcc:-true} --list-gpu-arch 2> /dev/null | grep -xE 'compute_(75|80|120)'); do
  ${MAKE:-make} --no-print-directory BUILD="$build" PTX_ARCH="$architecture" ptx "$build/test/ptx_run" || exit 1
  ptx=$(echo "$build/ptx/$architecture"/*.ptx)
  more+=("\"env PTX=$build/ptx/$architecture $build/test/ptx_run\"" "\"test/sass.sh $ptx\"")
done
HOST_ORDERS=all PTX_ORDERS=all PTX_MUTATIONS=220 MORE_TESTS="${more[*]}" ${MAKE:-make} --no-print-directory BUILD="$build" test
