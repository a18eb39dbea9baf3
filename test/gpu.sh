#!/bin/sh
# make test-gpu: the comparisons of the host run on a GPU, every function on all 2^32 inputs, 200 steps of train_copy on both devices, and
# compute-sanitizer where it is installed. One after the other: a GPU may allow only one process.
#   test/gpu.sh BUILD [run | math | training | memcheck | racecheck | synccheck | initcheck]
build=$1
case ${2:-all} in
  all) set -- "$build/test/gpu_run" "$build/test/gpu_math" "test/gpu_training.sh $build/train_copy" "test/gpu_sanitizer.sh $build/test/gpu_run" ;;
  run | math) set -- "$build/test/gpu_$2" ;;
  training) set -- "test/gpu_training.sh $build/train_copy" ;;
  memcheck | racecheck | synccheck | initcheck) set -- "test/gpu_sanitizer.sh $build/test/gpu_run $2" ;;
  *) echo "test-gpu-$2: expected run, math, training, memcheck, racecheck, synccheck or initcheck" && exit 2 ;;
esac
TEST_JOBS=1 test/run.sh "$@"
