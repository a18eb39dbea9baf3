#!/bin/sh
# Runs all checks and measurements on a GPU in ten minutes: kernels against the CPU, this tree against another, and
# PyTorch for comparison.
#
#   test/gpu_compare.sh BASE [OUT]      BASE: a commit, or the folder of another tree; OUT: where outputs go, default out
#
# Builds both trees in parallel (about 90 s on 16 cores). Compares all kernels of this tree with the CPU. Runs the bench
# of both alternately, twice, then test/side_by_side.py if Python has torch. PYTHON=… selects another Python. Status 1
# where a kernel differs from the CPU, or a loss from PyTorch's.
set -u
[ $# -ge 1 ] || { echo "gpu_compare.sh: expected BASE, a commit or a folder" >&2; exit 2; }
here=$(pwd)
mkdir -p "${2:-out}" && out=$(realpath "${2:-out}") || exit 1
if [ -d "$1" ]; then
  base=$(realpath "$1")
else
  base=$out/base
  mkdir -p "$base" && git archive "$1" >"$out/base.tar" && tar xf "$out/base.tar" -C "$base" || exit 1
fi
nvidia-smi --query-gpu=name,clocks.sm,clocks.mem,power.limit --format=csv | tee "$out/gpu.txt"

build() {  # FOLDER PROGRAM…
  cd "$1" && shift && make -j8 CUDA=1 "$@"
}
build "$base" build/test/bench >"$out/base.make" 2>&1 &
build "$here" build/test/bench build/test/gpu_run build/test/side_by_side >"$out/new.make" 2>&1 || { tail "$out/new.make"; exit 1; }
wait $! || { tail "$out/base.make"; exit 1; }

cd "$here" || exit 1
timeout 120 build/test/gpu_run >"$out/gpu_run.txt" 2>&1
status=$?
grep -e '^FAIL' "$out/gpu_run.txt" | head
tail -n 1 "$out/gpu_run.txt"
for round in 1 2; do
  for tree in "$base" "$here"; do
    cd "$tree" || exit 1
    [ "$tree" = "$here" ] && name=new || name=base
    timeout 60 build/test/bench --device cuda papers >"$out/papers_$name$round.txt" 2>&1
    timeout 30 build/test/bench --device cuda steps --only "n = 16" >"$out/steps_$name$round.txt" 2>&1
  done
done
cd "$here" || exit 1
python=${PYTHON:-python3}
if "$python" -c "import torch, numpy, safetensors" 2>"$out/torch.txt"; then
  timeout 300 "$python" test/side_by_side.py --device cuda >"$out/torch.txt" 2>&1 || status=1
fi
for file in papers_base1 papers_new1 papers_base2 papers_new2 steps_base1 steps_new1 steps_base2 steps_new2 torch; do
  echo "== $file"
  cat "$out/$file.txt"
done
exit $status
