#!/bin/sh
# What `make` builds for GPUs, and what it says, by the answers of nvidia-smi and nvcc: both are played here.
#   test/cuda_found.sh g++
compiler=${*:-g++}
. test/played.sh
ln -s "$PWD/Makefile" "$PWD/VERSION" "$PWD/src" "$PWD/test" "$folder/tree"

gpu_says() { echo "echo '$1'" | plays nvidia-smi; }
nvcc_knows() {  # the architectures it lists; compiles everything into an empty file
  plays nvcc << STOP
[ "\$1" != --version ] || { echo new; exit; }
if [ "\$1" = --list-gpu-arch ]; then printf 'compute_%s\n' $1; exit; fi
while [ \$# -gt 1 ]; do [ "\$1" = -o ] && : > "\$2"; shift; done
STOP
}
made() { played_make -j1 CXX="$compiler" OPENMP=0 MPI=0 NVCC="$folder/bin/nvcc" "$@"; }
check() {  # NAME EXPECTED FOUND: words that FOUND must hold
  if printf '%s\n' "$3" | grep -qF -- "$2"; then
    passes
  else
    fails "cuda: $1: expected $2, found: $(printf '%s\n' "$3" | tail -n 3)"
  fi
}
SHOW='--eval=show: ; @echo "for $(GPU_ARCH), PTX of $(strip $(GPU_PTX)), built: $(or $(CUDA_WANTED),no) $(CUDA_ANSWER)"'

nvcc_knows '75 80 86 90'
gpu_says 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'
check "an error in nvidia-smi's place" "for 80 90, PTX of 75 90, built: no" "$(made "$SHOW" show)"
check "and CUDA=1" "for 80 90, PTX of 75 90, built: yes" "$(made "$SHOW" CUDA=1 show)"
gpu_says 8.6
check "a GPU" "for 86, PTX of 86, built: yes" "$(made "$SHOW" show)"
gpu_says 12.0
check "a GPU that nvcc does not know" "for 80 90, PTX of 75 90, built: yes" "$(made "$SHOW" show)"
printf 'echo 9.0\necho 8.6\necho 9.0\n' | plays nvidia-smi
check "two kinds of GPU" "for 86 90, PTX of 90, built: yes" "$(made "$SHOW" show)"
check "others, named" "for 75, PTX of 75, built: yes" "$(made "$SHOW" GPU_ARCH=75 show)"
check "none wanted" "built: no" "$(made "$SHOW" CUDA=0 show)"
check "another folder" "left out: CUDA (BUILD=out; CUDA=1 builds it there, too)" "$(made -n BUILD=out all)"
check "no kernels of doubles" "left out: CUDA (not with REAL=double)" "$(made -n REAL=double CUDA=1 all)"
if [ "${compiler#* }" = "$compiler" ]; then
  check "a cache before the compiler" "-ccbin $compiler" "$(made -n CXX="ccache $compiler" CUDA=1 all)"
fi

# An environment's CUDA may be somebody else's.
environment=CUDA=/usr/local/cuda
check "a folder in the environment" "for 86 90, PTX of 90, built: yes" "$(made "$SHOW" show)"
environment=CUDA=0
check "none wanted there" "built: no" "$(made "$SHOW" show)"
environment=NVCC_APPEND_FLAGS=-use_fast_math
check "flags in the environment" "nvcc takes []" "$(made '--eval=flags: ; @echo "nvcc takes [$$NVCC_APPEND_FLAGS]"' flags)"
environment=
check "a folder asked for" "CUDA=/usr/local/cuda: expected 0, 1 or auto" "$(made "$SHOW" CUDA=/usr/local/cuda show)"
check "two answers" "CUDA=0 1: expected 0, 1 or auto" "$(made "$SHOW" CUDA="0 1" show)"

# Where nvidia-smi does not know, nvcc's own query does.
echo "echo 86,80" | plays __nvcc_device_query
check "nvidia-smi comes first" "for 86 90, PTX of 90, built: yes" "$(made "$SHOW" show)"
gpu_says 'Field "compute_cap" is not a valid field to query.'
check "an old nvidia-smi" "for 80 86, PTX of 86, built: yes" "$(made "$SHOW" show)"
echo "exit 127" | plays nvidia-smi
printf 'echo 90 90\necho 90\n' | plays __nvcc_device_query
check "no nvidia-smi" "for 90, PTX of 90, built: yes" "$(made "$SHOW" show)"
printf 'echo failed to call cuInit with error 100\nexit 1\n' | plays __nvcc_device_query
check "no GPU" "for 80 90, PTX of 75 90, built: no" "$(made "$SHOW" show)"

# What needs a GPU asks for CUDA, in parts too; what tests the CPU hides GPUs.
check "a part of make test-gpu" "-ffp-contract=off,-fno-math-errno,-fno-trapping-math,-fopenmp" "$(made -n test-gpu-math)"
check "another" "test/gpu_sanitizer.sh build/test/gpu_run racecheck" "$(made -n test-gpu-racecheck)"
check "make test" "CUDA_VISIBLE_DEVICES= test/run.sh" "$(made -n test)"
check "make test-gpu" "[TEST_JOBS=1 test/run.sh]" "[$(made -n test-gpu | grep -o ".*test/run.sh")]"
gpu_says 9.0

# Objects of the kernels are made again when what makes them changes, and only then.
object=build/gpu/loss.o
AGAIN="NVCC src/gpu/loss.cu"
check "an object" "$AGAIN" "$(made $object)"
check "the same" "[]" "[$(made $object)]"
check "another GPU_ARCH" "$AGAIN" "$(made $object GPU_ARCH=75)"
check "the same" "[]" "[$(made $object GPU_ARCH=75)]"
check "other NVCCFLAGS" "$AGAIN" "$(made $object GPU_ARCH=75 NVCCFLAGS=-O1)"
cp "$folder/bin/nvcc" "$folder/bin/other"
check "another NVCC" "$AGAIN" "$(made $object GPU_ARCH=75 NVCCFLAGS=-O1 NVCC="$folder/bin/other")"
sed 's/echo new/echo newer/' "$folder/bin/nvcc" > "$folder/bin/other"
check "another version of it" "$AGAIN" "$(made $object GPU_ARCH=75 NVCCFLAGS=-O1 NVCC="$folder/bin/other")"
case $compiler in ccache\ * | distcc\ * | sccache\ *) itself=${compiler#* } ;; *) itself=$compiler ;; esac
check "PTX of the C++ compiler's choice" "-ccbin ${itself%% *} -arch=compute_90" "$(made -n test)"

object=build/test/gpu_math.o
check "an object of a test" "NVCC test/gpu_math.cu" "$(made $object)"
check "the same" "[]" "[$(made $object)]"
check "another GPU_ARCH" "NVCC test/gpu_math.cu" "$(made $object GPU_ARCH=75)"

# A link to nvcc leads to its toolkit: libraries, and tools that are not on PATH.
toolkit=$(realpath "$folder")/toolkit
mkdir -p "$toolkit/bin" "$toolkit/lib64" "$toolkit/compute-sanitizer"
: > "$toolkit/lib64/libcudart_static.a"
mv "$folder/bin/nvcc" "$toolkit/bin"
ln -s "$toolkit/bin/nvcc" "$folder/bin/nvcc"
check "a link to nvcc" "-L$toolkit/bin/../lib64 -lcudart_static" "$(made '--eval=show: ; @echo "$(CUDA_LIBRARIES)"' show)"
for tool in ptxas cuobjdump nvdisasm; do
  : | plays $tool
  mv "$folder/bin/$tool" "$toolkit/bin"
done
check "its ptxas and disassemblers" "[0 passed, 0 failed]" "[$(NVCC="$folder/bin/nvcc" test/sass.sh)]"
: | plays compute-sanitizer
mv "$folder/bin/compute-sanitizer" "$toolkit/compute-sanitizer"
check "its compute-sanitizer" "[8 passed, 0 failed]" "[$(NVCC="$folder/bin/nvcc" test/gpu_sanitizer.sh program | grep -v '^ok')]"
check "one tool of it" "[2 passed, 0 failed]" "[$(NVCC="$folder/bin/nvcc" test/gpu_sanitizer.sh program memcheck | grep -v '^ok')]"
rm "$folder/bin/nvcc"
mkdir "$toolkit/lib"
mv "$toolkit/lib64/libcudart_static.a" "$toolkit/lib"
plays nvcc << STOP
if [ "\$1" = --dryrun ]; then echo '#\$ TOP=$toolkit' >&2; exit; fi
exec "$toolkit/bin/nvcc" "\$@"
STOP
check "a script around nvcc" "-L$toolkit/bin/../lib -lcudart_static" "$(made '--eval=show: ; @echo "$(CUDA_LIBRARIES)"' show)"

# One that cannot compile for this C++ compiler, or is too old.
plays nvcc << 'STOP'
[ "$1" != --version ] || { echo old; exit; }
[ "$1" != --list-gpu-arch ] || { echo compute_90; exit; }
echo 'host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!' >&2
exit 1
STOP
WHY="$folder/bin/nvcc cannot build the kernels:"
check "a C++ compiler too new for it" "built: no $WHY host_config.h:143:2: error: #error -- unsupported" "$(made "$SHOW" show)"
check "and CUDA=1 stops" "CUDA=1: $WHY" "$(made "$SHOW" CUDA=1 show)"
check "and make says so" "left out: CUDA ($WHY" "$(made -n all | grep 'left out: CUDA')"
check "and make test skips its PTX" "test/skip.sh ptx: $WHY" "$(made -n test)"
plays nvcc << 'STOP'
[ "$1" != --version ] || { echo older; exit; }
[ "$1" != --list-gpu-arch ] || { echo compute_70; exit; }
echo "nvcc fatal   : Unsupported gpu architecture 'compute_90'" >&2
exit 1
STOP
check "a toolkit that is too old" "built: no $WHY nvcc fatal   : Unsupported gpu architecture" "$(made "$SHOW" show)"
check "and make test, without the kernels too" "[0]" "[$(made -n test CUDA=0 | grep -c -e -arch=compute_)]"
nvcc_knows 70
check "a newer one in its place" "built: yes" "$(made "$SHOW" show)"
# What it would need of the environment the build does not give it.
plays nvcc << 'STOP'
[ "$1" != --version ] || { echo flagged; exit; }
[ "$1" != --list-gpu-arch ] || { echo compute_90; exit; }
[ -n "$NVCC_APPEND_FLAGS" ] || { echo 'error: -- unsupported GNU version!' >&2; exit 1; }
STOP
environment=NVCC_APPEND_FLAGS=-allow-unsupported-compiler
check "flags in the environment that it needs" "built: no $WHY error: -- unsupported" "$(made "$SHOW" show)"
environment=
rm "$folder/bin/nvidia-smi" "$folder/bin/nvcc"
check "no toolkit" "CUDA=1: no nvcc here" "$(made "$SHOW" CUDA=1 NVCC= show)"
counts
