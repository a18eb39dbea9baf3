#!/bin/sh
# What `make` builds for GPUs, and what it says, by the answers of nvidia-smi and nvcc: both are played here.
#   test/cuda_found.sh g++
set -u
compiler=${1:-g++}
passed=0
failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$folder/bin" "$folder/tree"
ln -s "$PWD/Makefile" "$PWD/VERSION" "$PWD/src" "$PWD/test" "$folder/tree"

# plays NAME: the program that stands in this function's input.
plays() {
  { echo '#!/bin/sh' && cat; } > "$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}
gpu_says() { echo "echo '$1'" | plays nvidia-smi; }
nvcc_knows() {  # the architectures it lists; compiles everything into an empty file
  plays nvcc << STOP
[ "\$1" != --version ] || { echo new; exit; }
if [ "\$1" = --list-gpu-arch ]; then printf 'compute_%s\n' $1; exit; fi
while [ \$# -gt 1 ]; do [ "\$1" = -o ] && : > "\$2"; shift; done
STOP
}
# made ARGUMENT…: make here, where nothing of the caller's own make is known.
made() {
  env -u MAKEFLAGS -u MAKELEVEL -u NVCC -u NVCCFLAGS PATH="$folder/bin:$PATH" \
    make --no-print-directory -j1 -C "$folder/tree" CXX="$compiler" OPENMP=0 MPI=0 NVCC="$folder/bin/nvcc" "$@" 2>&1
}
check() {  # NAME EXPECTED FOUND: words that FOUND must hold
  if printf '%s\n' "$3" | grep -qF -- "$2"; then
    passed=$((passed + 1))
  else
    echo "FAIL cuda: $1: expected $2, found: $(printf '%s\n' "$3" | tail -n 3)"
    failed=$((failed + 1))
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
plays nvcc << 'STOP'
[ "$1" != --version ] || { echo older; exit; }
[ "$1" != --list-gpu-arch ] || { echo compute_70; exit; }
echo "nvcc fatal   : Unsupported gpu architecture 'compute_90'" >&2
exit 1
STOP
check "a toolkit that is too old" "built: no $WHY nvcc fatal   : Unsupported gpu architecture" "$(made "$SHOW" show)"
nvcc_knows 70
check "a newer one in its place" "built: yes" "$(made "$SHOW" show)"
rm "$folder/bin/nvidia-smi" "$folder/bin/nvcc"
check "no toolkit" "CUDA=1: no nvcc here" "$(made "$SHOW" CUDA=1 NVCC= show)"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
