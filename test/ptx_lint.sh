#!/bin/sh
# Reads what nvcc made of the kernels' arithmetic: the host run of the kernels cannot see that.
#
#   NVCC=nvcc NVCCFLAGS="…" CCBIN=g++ test/ptx_lint.sh build/ptx/compute_90/*.ptx
#
# The PTX is the build's, with the lines of its source (-lineinfo), the same that test/ptx executes. It may not contain
#   - .approx, .full, .ftz                an instruction that is not correctly rounded, or drops subnormals
#   - add, sub, mul without .rn           ptxas or the driver may contract these; with .rn PTX forbids it
#   - another rounding than .rn, mad      not the contract's arithmetic
#   - atom, red, redux on floats          sums in the order of arrival
#   - max, min on floats                  numerics::max says what becomes of NaN and of zeros; with a constant it may be the same
#   - matrix and half-precision types     not binary32
#   - calls of CUDA's math functions      the host has others; those that are inlined show by the rules above or below
#   - a fused multiply-add that is not written
# The last is one whose line of source does not say __fmaf_rn, which numerics::fma alone does: a contraction has the line of
# its addition, and CUDA's math functions, whose polynomials are inlined and made of fma, that of their call. A line that says
# numerics::fma counts too: where nvcc computes both sides of a choice, they have the line of the choice.
# Double precision is noted, not failed: it is exact too, but seldom meant.

set -u

NVCC=${NVCC:-nvcc}
NVCCFLAGS=${NVCCFLAGS:--std=c++17 -Isrc -fmad=false -ftz=false -prec-div=true -prec-sqrt=true}

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
passed=0
failed=0

# Prints "REASON: FUNCTION, FILE:LINE: INSTRUCTION" for each instruction that may not be there.
cat >"$folder/lint.awk" <<'STOP'
BEGIN { FUSED = "fused multiply-add that is not written" }
function report(reason) { found[++count] = reason; line[count] = place; function_of[count] = name; text[count] = $0 }
# x > c ? x : c is max.f32 for every x where c is a number and not −0; x < c ? x : c is min.f32 where c is not +0.
function exact_constant(word) {
  return word ~ /^(max|min)\.f32$/ && /, *0f[0-9A-Fa-f]+/ && (!/0f[7Ff][Ff][89A-Fa-f]/ || /0f[7Ff][Ff]800000/) &&
         !index($0, word ~ /^max/ ? "0f80000000" : "0f00000000")
}
# The name of a file, which the PTX tells at its end.
function source(place,  at, name) {
  split(place, at, " ")
  name = file[at[1]]
  gsub(/"/, "", name)
  return name
}
# Whether the line of source that an instruction comes from says that it is a fused multiply-add.
function written(place,  at, name, said, n) {
  split(place, at, " ")
  name = source(place)
  for (n = 0; n < at[2] && (getline said < name) > 0;) ++n
  close(name)
  return n > 0 && n == at[2] && said ~ /(__fmaf_rn|numerics::fma)[(]/
}
function check(word) {
  if (word ~ /\.(approx|full)/) report("not correctly rounded")
  else if (word ~ /\.ftz/) report("drops subnormals")
  else if (word ~ /^(atom|red|redux)\..*f(16|32|64)/) report("float atomic")
  else if (word ~ /^(max|min)\..*f(32|64)$/ && !exact_constant(word)) report("max or min that may differ")
  else if (word ~ /mma|^tcgen05/ || word ~ /\.(b?f16(x2)?|tf32|e[0-9]m[0-9])/) report("narrower than float")
  else if (word ~ /^fma\..*f(32|32x2|64)$/) report(FUSED)
  else if (word ~ /^mad.*\.f(32|64)$/) report("mad instead of fma")
  else if (word ~ /^(add|sub|mul)(\.sat)?\.f(32|32x2|64)$/) report("may be contracted (compiled without -fmad=false?)")
  else if (word ~ /^(add|sub|mul|fma|div|sqrt|rcp)\.rn\.f64$/) report("note")
  else if (word ~ /^(add|sub|mul|fma|div|sqrt|rcp)\..*f(32|32x2|64)$/ && word !~ /\.rn\.f32(x2)?$/) report("rounded otherwise")
  else if (/__nv_|__internal_/ && word !~ /^(st|ld|mov|cvta)/) report("function of CUDA's")
}
/^[ \t]*\.file/ { file[$2] = $3; next }
/^[ \t]*\.loc/ { place = $2 " " $3; next }
/\.(entry|func)[ \t]/ {
  name = $0
  sub(/^.*\.(entry|func)[ \t]+/, "", name)
  sub(/^\([^)]*\)[ \t]*/, "", name)
  sub(/[^A-Za-z0-9_$].*$/, "", name)
  next
}
/^[ \t]*(\/\/|\.|$)/ { next }
{
  sub(/^[ \t]+/, "")
  statements = split($0, statement, /[;{}]/)
  for (i = 1; i <= statements; ++i) {
    split(statement[i], words, " ")
    check(words[1] ~ /^@/ ? words[2] : words[1])
  }
}
END {
  for (i = 1; i <= count; ++i) {
    if (found[i] == FUSED && !(line[i] in known)) known[line[i]] = written(line[i])
    if (found[i] == FUSED && known[line[i]]) continue
    split(line[i], at, " ")
    print found[i] ": " function_of[i] ", " source(line[i]) ":" at[2] ": " text[i]
  }
}
STOP

readable() {
  if command -v c++filt >/dev/null 2>&1; then c++filt; else cat; fi
}

# Prints the offending lines of a PTX file.
findings() { awk -f "$folder/lint.awk" "$1" | readable | sed "s|$PWD/||" | sort -u; }

# fail NAME LINES REPEAT
fail() {
  failed=$((failed + 1))
  printf '%s\n' "$2" | head -n 8 | sed "s|^|FAIL ptx $1: |"
  more=$(($(printf '%s\n' "$2" | wc -l) - 8))
  [ $more -le 0 ] || echo "     and $more more"
  echo "     repeat: $3"
}

lint() {
  if ! grep -q '^\.target' "$1"; then
    fail "$1" "no PTX" "make $1"
    return
  fi
  lines=$(findings "$1")
  notes=$(printf '%s\n' "$lines" | grep -c '^note: ')
  lines=$(printf '%s\n' "$lines" | grep -v '^note: ')
  if [ -n "$lines" ]; then
    fail "$1" "$lines" "$0 $1"
    return
  fi
  passed=$((passed + 1))
  echo "ok   ptx $1"
  [ "$notes" -eq 0 ] || echo "note ptx $1: $notes instructions in double precision"
}

# A lint that finds nothing proves nothing: each of these kernels breaks the rule it is named for, but the last.
cat >"$folder/bad.cu" <<'STOP'
__global__ void not_correctly_rounded(float* x) { x[0] = __fdividef(x[0], x[1]); }
__global__ void drops_subnormals(float* x) { asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(x[0]) : "f"(x[1]), "f"(x[2])); }
__global__ void float_atomic(float* x) { atomicAdd(x, x[1]); }
__global__ void rounded_otherwise(float* x) { x[0] = __fmul_rz(x[0], x[1]); }
__global__ void may_be_contracted(float* x) { asm("mul.f32 %0, %1, %2;" : "=f"(x[0]) : "f"(x[1]), "f"(x[2])); }
__global__ void mad_instead_of_fma(float* x) { asm("mad.rn.f32 %0, %1, %2, %1;" : "=f"(x[0]) : "f"(x[1]), "f"(x[2])); }
__global__ void narrower_than_float(float* x) { asm("{.reg .b16 h; cvt.rn.f16.f32 h, %0;}" : : "f"(x[1])); }
__global__ void fused_multiply_add_that_is_not_written(float* x) { x[0] = logf(x[1]); }
__global__ void max_or_min_that_may_differ(float* x) { x[0] = fmaxf(x[1], x[2]); }
__global__ void note(double* x) { x[0] += x[1]; }
__global__ void good(float* x, const float* y, unsigned n, unsigned long long m) {
  x[0] = __fmaf_rn(y[0], y[1], y[2]) / y[3] + sqrtf(y[4]) * (1.0f / y[5]) - y[6];
  x[1] = y[0] * y[1] + y[2];
  x[2] = (y[3] > 0.0f ? y[3] : 0.0f) + (y[4] < 2.0f ? y[4] : 2.0f) + (float)(m % n) + (float)((unsigned)y[4] / n) + (float)(long long)y[5];
}
STOP
echo '__global__ void contracted(float* x) { x[0] = x[1] * x[2] + x[3]; }' >"$folder/contracted.cu"

# compiled FLAGS NAME: its PTX, beside it.
compiled() {
  # shellcheck disable=SC2086
  $NVCC $1 ${CCBIN:+-ccbin "$CCBIN"} -arch=compute_90 -lineinfo -ptx "$folder/$2.cu" -o "$folder/$2.ptx" >"$folder/$2.log" 2>&1 || cat "$folder/$2.log"
}

self_check() {
  compiled "$NVCCFLAGS" bad
  compiled "$(printf '%s' "$NVCCFLAGS" | sed 's/-fmad=false//')" contracted
  found=$(findings "$folder/bad.ptx")
  wrong=
  for rule in not_correctly_rounded drops_subnormals float_atomic rounded_otherwise may_be_contracted \
    mad_instead_of_fma narrower_than_float max_or_min_that_may_differ fused_multiply_add_that_is_not_written note; do
    words=$(echo $rule | tr _ ' ' | sed 's/multiply add/multiply-add/')
    printf '%s\n' "$found" | grep -q "^$words.*: $rule(" || wrong="$wrong $rule was not found;"
  done
  printf '%s\n' "$found" | grep -q ': good(' && wrong="$wrong the good kernel was found;"
  findings "$folder/contracted.ptx" | grep -q '^fused multiply-add that is not written: contracted(' ||
    wrong="$wrong a contraction was not found;"
  if [ -n "$wrong" ]; then
    fail self-check "$(printf '%s\n' "$wrong" "$found")" "NVCCFLAGS='$NVCCFLAGS' $0"
  else
    passed=$((passed + 1))
    echo "ok   ptx self-check: each kind of violation is found, and nothing else"
  fi
}

self_check
for file in "$@"; do lint "$file"; done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
