#!/bin/sh
# The answers of src/gpu/probe.sh and src/train/probe_mpi.sh, where nvidia-smi, nvcc and mpicxx are replaced by scripts.
set -u
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$folder/bin"
PATH=$folder/bin:$PATH
fake() { { echo '#!/bin/sh' && cat; } > "$folder/bin/$1" && chmod +x "$folder/bin/$1"; }
check() { # NAME EXPECTED: a line that the answer must hold
  if grep -qF -- "$2" "$folder/answer"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1)) && echo "FAIL probe: $1: expected $2, found: $(tail -n +2 "$folder/answer" | tr '\n' ';')"
  fi
}
gpu() { src/gpu/probe.sh "$folder/answer" "$1" "${3:-nvcc}" "${2-}" -O3 -ccbin g++; }
codes() { for a in $1; do printf -- ' -gencode arch=compute_%s,code=sm_%s' "$a" "$a"; done; for a in $2; do printf -- ' -gencode arch=compute_%s,code=compute_%s' "$a" "$a"; done; }
nvcc_knows() { # its architectures; it compiles everything into an empty file
  fake nvcc << STOP
[ "\$1" != --version ] || { echo "version $1"; exit; }
[ "\$1" != --list-gpu-arch ] || { printf 'compute_%s\n' $1; exit; }
while [ \$# -gt 1 ]; do [ "\$1" = -o ] && : > "\$2"; shift; done
STOP
}
nvcc_knows '75 80 86 90'
echo "echo NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver." | fake nvidia-smi
gpu auto && check "an error of nvidia-smi" "CUDA_LEFT_OUT := no GPU here"
gpu 1 && check "CUDA=1 without a GPU" "GENCODE := $(codes '80 90' '75 90')"
gpu 0 && check "CUDA=0" "CUDA_LEFT_OUT := CUDA=0"
echo "echo 8.6" | fake nvidia-smi
gpu auto && check "one GPU" "GENCODE := $(codes 86 86)"
printf 'echo 9.0\necho 8.6\necho 9.0\n' | fake nvidia-smi
gpu auto && check "two kinds of GPUs" "GENCODE := $(codes '86 90' 90)"
gpu auto 75 && check "GPU_ARCH" "GENCODE := $(codes 75 75)"
echo "echo 12.0" | fake nvidia-smi
gpu auto && check "a GPU that nvcc does not know" "GENCODE := $(codes '80 90' '75 90')"
echo "exit 127" | fake nvidia-smi
echo "echo 90 80" | fake __nvcc_device_query
gpu auto && check "nvcc's own query" "GENCODE := $(codes '80 90' 90)"
: > "$folder/bin/ran" && echo "echo 9.0" | fake nvidia-smi
gpu auto && echo kept >> "$folder/answer" && gpu auto && check "the answer is kept" kept
nvcc_knows '80 90' && gpu auto && ! grep -q kept "$folder/answer" && check "until nvcc is another" "CUDA_WANTED := yes"
mkdir -p "$folder/toolkit/bin" "$folder/toolkit/lib64" && : > "$folder/toolkit/lib64/libcudart_static.a"
mv "$folder/bin/nvcc" "$folder/toolkit/bin" && ln -s "$folder/toolkit/bin/nvcc" "$folder/bin/nvcc"
rm "$folder/answer" && gpu auto && check "a link to nvcc" "-L$(realpath "$folder")/toolkit/bin/../lib64 -lcudart_static"
rm "$folder/bin/nvcc"
fake nvcc << 'STOP'
[ "$1" = --version ] && echo old && exit
echo 'host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!' >&2
exit 1
STOP
gpu auto && check "a C++ compiler that is too new" "cannot build the kernels: host_config.h:143:2: error: error -- unsupported GNU version"
gpu auto "" "$folder/none" && check "no nvcc" "CUDA_LEFT_OUT := there is no nvcc"

mpi() { src/train/probe_mpi.sh "$folder/answer" "$1" mpicxx "$folder/bin/compiler"; }
fake compiler << 'STOP'
while [ $# -gt 1 ]; do [ "$1" = -o ] && printf '#!/bin/sh\nexit 0\n' > "$2" && chmod +x "$2"; shift; done
STOP
echo 'echo g++ -I/some/mpi -L/some/lib -lmpi_cxx -lmpi' | fake mpicxx
mpi auto && check "MPI" "MPI_FLAGS := -DPETROGLYPH_MPI -isystem /some/mpi" && check "its libraries" "MPI_LIBRARIES :=  -L/some/lib -lmpi"
mpi 0 && check "MPI=0" "MPI_LEFT_OUT := MPI=0"
sed -i 's/exit 0/exit 1/' "$folder/bin/compiler"
rm "$folder/answer" && mpi auto && check "a program that does not run" "MPI_LEFT_OUT := a program that is linked with mpicxx's flags does not run"
echo 'echo "ld: error: no libc" >&2; exit 1' | fake compiler
rm "$folder/answer" && mpi auto && check "a program that does not link" "MPI_LEFT_OUT := a program does not link with mpicxx's flags: ld: error: no libc"
echo 'exit 1' | fake mpicxx
mpi auto && check "no wrapper" "MPI_LEFT_OUT := there is no mpicxx"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
