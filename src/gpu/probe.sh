#!/bin/sh
# Checks whether nvcc can build the CUDA kernels, and for which GPUs. Writes the result to FILE as make variables:
#   NVCC_WORKS, NVCC, CUDA_VERSION                      if nvcc compiles a kernel
#   CUDA_WANTED, CUDA_DEFINE, GENCODE, CUDA_LIBRARIES   if the kernels are also to be built
#   CUDA_LEFT_OUT                                       otherwise: the reason
# The result is reused until nvcc, the C++ compiler, the GPUs or the flags change.
#   src/gpu/probe.sh FILE 0|1|auto NVCC "GPU_ARCH" FLAGS… -ccbin COMPILER
file=$1 choice=$2 nvcc=$3 archs=$4
shift 4
# Ignore flags in the environment: they are not part of the build, and make before 4.4 would not pass them on.
unset NVCC_APPEND_FLAGS NVCC_PREPEND_FLAGS

found=$(command -v "${nvcc##* }") || found=/usr/local/cuda/bin/nvcc
[ "$nvcc" != nvcc ] || nvcc=$found
# nvcc may be a link or a script. Look for its toolkit at the link's target and where nvcc --dryrun reports it.
top=$($nvcc --dryrun -x cu /dev/null -o /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p')
folders="$(dirname "$(realpath "$found" 2> /dev/null)") $(dirname "$found") ${top:+$top/bin}"

# Compute capabilities of the GPUs here (90 for 9.0): from nvidia-smi, unless it prints errors, else from nvcc's tool.
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

# Build code for the GPUs of this machine, else for two generations of large GPUs. Add PTX for newer GPUs and, with the
# default, for older ones: the driver compiles it for its own GPU.
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
# Look in the directories of the toolkit, of conda and of the HPC SDK.
for around in $folders; do
  for place in lib64 lib targets/*/lib ../cuda/lib64; do
    for library in "$around/../"$place/libcudart_static.a; do
      if [ -z "$libraries" ] && [ -e "$library" ]; then libraries="-L$(dirname "$library")"; fi
    done
  done
done
answer "$@" "CUDA_WANTED := yes" "CUDA_DEFINE := -DPETROGLYPH_CUDA" "GENCODE := $gencode" "CUDA_LIBRARIES := $libraries -lcudart_static -ldl -lrt -lpthread"
