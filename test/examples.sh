#!/bin/sh
# The programs of examples/ have the weights of the library's for the same settings. The one-file programs are compiled with every compiler
# that is installed, with the flags that their first lines name, and run with 1 and 2 threads.
#
#   test/examples.sh BUILD [STEPS]     BUILD: the folder with train_copy, train_text and examples/train; STEPS of causal_rn, default 2
set -u
build=$(cd "$1" && pwd) || exit 1
steps=${2:-2}
source=$(pwd)/examples
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

passed=0
failed=0
check() {  # NAME EXPECTED FOUND
  if [ -n "$2" ] && [ "$2" = "$3" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL $1: expected '$2', found '$3'"
  fi
}
last() { tail -n 1 "$1"; }

export OMP_WAIT_POLICY=passive  # other tests run at the same time
seq 1 700 | sed 's/$/ is a number, and so is the next./' > numbers.txt
"$build/train_copy" --steps "$steps" --stop-at 2 --eval-samples 1 --name copy > copy.txt 2>&1
# 22 steps: past the 20 of the warm-up, so that the cosine of the learning rate counts.
for n in 3 22; do
  "$build/train_text" --data numbers.txt --val-part 0.1 --layers 4 --heads 4 --width 128 --context 64 --batch 12 --steps $n \
    --lr 1e-3 --lr-floor 1e-4 --warmup 20 --beta2 0.99 --weight-decay 0.1 --norm affine --gelu tanh \
    --embedding-deviation 0.02 --eval-every 500 --eval-samples 1700 --sample-length 0 --name text$n > text$n.txt 2>&1
done
"$build/examples/train" "$steps" > train.txt 2>&1
check train "$(last copy.txt)" "$(last train.txt)"

flags=$(sed -n 's/^\/\/ *g++ \(.*\) examples\/causal_rn.cpp.*/\1/p' "$source/causal_rn.cpp")
for compiler in g++ clang++; do
  command -v $compiler > /dev/null || continue
  its_flags=$flags
  # clang++ may be installed without an OpenMP library.
  echo 'int main() {}' > empty.cpp
  $compiler -fopenmp empty.cpp -o empty 2> /dev/null && ./empty || its_flags=$(echo "$flags" | sed 's/ *-fopenmp//')
  rm -f causal_rn gpt2
  for program in causal_rn gpt2; do
    $compiler $its_flags -Wall -Wextra -Werror -Wno-unknown-pragmas "$source/$program.cpp" -o $program &
  done
  wait
  for threads in 1 2; do
    OMP_NUM_THREADS=$threads ./causal_rn "$steps" > copy_here.txt 2>&1
    check "causal_rn, $compiler, $threads threads" "$(last copy.txt)" "$(last copy_here.txt)"
    OMP_NUM_THREADS=$threads ./gpt2 numbers.txt 3 > text_here.txt 2>&1
    check "gpt2, $compiler, $threads threads" "$(last text3.txt)" "$(last text_here.txt)"
  done
  ./gpt2 numbers.txt 22 > text_here.txt 2>&1
  check "gpt2, 22 steps, $compiler" "$(last text22.txt)" "$(last text_here.txt)"
  measures() { sed -n "s/^step $2.*\($3\).*/\1/p" "$1"; }
  check "causal_rn's first loss, $compiler" "$(measures copy.txt '1 ' 'loss .* %')" "$(measures copy_here.txt '1 ' 'loss .* %')"
  check "gpt2's validation loss, $compiler" "$(measures text22.txt 22 'validation loss [0-9.]*')" \
    "$(measures text_here.txt 22 'validation loss [0-9.]*')"
  ./gpt2 missing.txt > out.txt 2>&1
  check "gpt2 without its text" "1 gpt2: missing.txt: cannot be opened: expected a text file" "$? $(cat out.txt)"
  head -c 649 numbers.txt > short.txt
  ./gpt2 short.txt > out.txt 2>&1
  check "gpt2 of a short text" "1 gpt2: short.txt: 649 characters: expected at least 650" "$? $(cat out.txt)"
done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
