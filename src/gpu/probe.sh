#!/bin/sh
# Finds out whether and for which GPUs the CUDA kernels can be built, and writes the answer as variables for make:
#   NVCC_WORKS, NVCC, CUDA_VERSION   where nvcc compiles a kernel
#   CUDA_WANTED, CUDA_DEFINE, GENCODE, CUDA_LIBRARIES   where the kernels are to be built, too
#   CUDA_LEFT_OUT   else, the reason
# The answer is kept until the question changes: another nvcc, C++ compiler, GPU or flag.
#   src/gpu/probe.sh FILE 0|1|auto NVCC "GPU_ARCH" FLAGS… -ccbin COMPILER
file=$1 choice=$2 nvcc=$3 archs=$4
shift 4
# More flags in the environment are not the build's, and make before 4.4 would pass them.
unset NVCC_APPEND_FLAGS NVCC_PREPEND_FLAGS

found=$(command -v "${nvcc##* }") || found=/usr/local/cuda/bin/nvcc
[ "$nvcc" != nvcc ] || nvcc=$found
# nvcc may be a link or a script: then its toolkit is where it leads, or where it says.
top=$($nvcc --dryrun -x cu /dev/null -o /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
folders="$(dirname "$(realpath "$found" 2> /dev/null)") $(dirname "$found") ${top:+$top/bin}"

# The compute capabilities of the GPUs here, 90 for 9.0: of nvidia-smi, which prints errors in their place, or of nvcc's own tool.
gpus() {
  nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2> /dev/null | sed -n 's/^\([0-9][0-9]*\)\.\([0-9]\)$/\1\2/p' | sort -u | grep . ||
    { said=$("$(dirname "$(realpath "$found" 2> /dev/null)")/__nvcc_device_query" 2> /dev/null) &&
      echo "$said" | tr -cs 0-9 '[\n*]' | grep -x '[1-9][0-9]\{1,2\}' | sort -u; }
}
[ "$choice" = 0 ] || here=$(gpus | tr '\n' ' ')
for compiler in "$@"; do :; done
version="$($nvcc --version 2> /dev/null | tail -n 1) $("$compiler" --version 2> /dev/null | head -n 1)"
question="# $choice $nvcc $archs for $here: $* $version"
[ "$(head -n 1 "$file" 2> /dev/null)" != "$question" ] || exit 0
mkdir -p "$(dirname "$file")" && folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
answer() { printf '%s\n' "$question" "$@" > "$file"; }

if [ "$choice" = 0 ]; then
  answer "CUDA_LEFT_OUT := CUDA=0"
  exit
fi
if ! command -v "${nvcc##* }" > /dev/null; then
  answer "CUDA_LEFT_OUT := there is no nvcc"
  exit
fi

# Code for the GPUs that are here; else for two generations of large ones. PTX, which a driver compiles for its own GPU, for newer ones, and
# where the default is used also for older ones.
known=$($nvcc --list-gpu-arch 2> /dev/null | sed -n 's/^compute_//p')
ptx=""
if [ -z "$archs" ]; then
  for gpu in $here; do
    ! echo "$known" | grep -qx "$gpu" || archs="$archs $gpu"
  done
  [ -n "$archs" ] || { archs="80 90" && ptx=75; }
fi
for arch in $archs; do gencode="$gencode -gencode arch=compute_$arch,code=sm_$arch"; done
for arch in $ptx $arch; do gencode="$gencode -gencode arch=compute_$arch,code=compute_$arch"; done

cat > "$folder/probe.cu" << 'STOP'
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <string>

__global__ void probe(int* x) { *x = 1; }

int main() {
  cudaLaunchConfig_t config = {};
  return cudaLaunchKernelEx(&config, probe, static_cast<int*>(nullptr));
}
STOP
if ! said=$($nvcc "$@" $gencode -c -o "$folder/probe.o" "$folder/probe.cu" 2>&1); then
  reason=$(printf '%s\n' "$said" | grep -i -m 1 'error\|fatal\|not found' || printf '%s\n' "${said:-no message}" | head -n 1)
  reason=$(printf '%s' "$reason" | sed "s|$folder/||g" | tr -d '"`$#\\' | cut -c 1-200)
  answer "CUDA_LEFT_OUT := $nvcc cannot build the kernels: $reason"
  exit
fi
set -- "NVCC_WORKS := yes" "NVCC := $nvcc" "CUDA_VERSION := $(echo "$version" | tr -d '#$')"
if [ "$choice" = auto ] && [ -z "$here" ]; then
  answer "$@" "CUDA_LEFT_OUT := no GPU here; CUDA=1 builds the kernels all the same"
  exit
fi
# Of the toolkit, of conda's, of the HPC SDK's.
for around in $folders; do
  for place in lib64 lib targets/*/lib ../cuda/lib64; do
    for library in "$around/../"$place/libcudart_static.a; do
      if [ -z "$libraries" ] && [ -e "$library" ]; then libraries="-L$(dirname "$library")"; fi
    done
  done
done
answer "$@" "CUDA_WANTED := yes" "CUDA_DEFINE := -DPETROGLYPH_CUDA" "GENCODE := $gencode" "CUDA_LIBRARIES := $libraries -lcudart_static -ldl -lrt -lpthread"
