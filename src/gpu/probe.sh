#!/bin/sh
# Whether a command line of nvcc can build the kernels: prints yes, or in one line why not. A toolkit before 11.8 cannot, nor one
# for which the C++ compiler is too new. Asked once: the answer stays in FILE until the command line is another, or a version.
#   src/gpu/probe.sh FILE NVCC FLAGS… -ccbin COMPILER
# More flags in the environment are not the build's (see Makefile), where make before 4.4 would pass them on.
unset NVCC_APPEND_FLAGS NVCC_PREPEND_FLAGS
file=$1
shift
for compiler in "$@"; do :; done
asked="$* $("$1" --version 2>/dev/null | tail -n 1) $("$compiler" --version 2>/dev/null | head -n 1)"
if [ -f "$file" ] && [ "$(head -n 1 "$file")" = "$asked" ]; then
  tail -n 1 "$file"
  exit
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$folder/probe.cu" <<'STOP'
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <string>

__global__ void probe(int* x) { *x = 1; }

int main() {
  cudaLaunchConfig_t config = {};
  return cudaLaunchKernelEx(&config, probe, static_cast<int*>(nullptr));
}
STOP
if said=$("$@" -c -o "$folder/probe.o" "$folder/probe.cu" 2>&1); then
  answer=yes
else
  said=${said:-it says nothing}
  answer=$(printf '%s\n' "$said" | grep -i -m 1 'error\|fatal\|not found' || printf '%s\n' "$said" | head -n 1)
  answer="$1 cannot build the kernels: $(printf '%s' "$answer" | sed "s|$folder/||g" | tr -d '"`$\\' | cut -c 1-200)"
fi
mkdir -p "$(dirname "$file")"
printf '%s\n%s\n' "$asked" "$answer" >"$file"
printf '%s\n' "$answer"
