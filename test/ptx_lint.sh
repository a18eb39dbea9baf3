#!/bin/sh
# Reads what nvcc made of the kernels' arithmetic: the host run of the kernels cannot see that.
#
#   NVCC=nvcc NVCCFLAGS="…" test/ptx_lint.sh src/gpu/*.cu
#
# Each file is compiled to PTX, with the flags of the build (but for the architectures: PTX_ARCH, one or several), and may not
# contain
#   - .approx, .full, .ftz                an instruction that is not correctly rounded, or drops subnormals
#   - add, sub, mul without .rn           ptxas or the driver may contract these; with .rn PTX forbids it
#   - another rounding than .rn, mad      not the contract's arithmetic
#   - atom, red, redux on floats          sums in the order of arrival
#   - max, min on floats                  numerics::max says what becomes of NaN and of zeros; with a constant it may be the same
#   - matrix and half-precision types     not binary32
#   - calls of CUDA's math functions      the host has others; those that are inlined show by the rules above or below
#   - a fused multiply-add that is not written
# The last is found by compiling once more with every written one (__fmaf_rn, fmaf, __builtin_fmaf: numerics::fma is
# made of the first) turned into a call of a function of another file: any fma that is still there came from the
# compiler, or from a math function of CUDA's, whose polynomials are inlined and made of fma.
# Double precision is noted, not failed: it is exact too, but seldom meant.

set -u

NVCC=${NVCC:-nvcc}
NVCCFLAGS=${NVCCFLAGS:--std=c++17 -Isrc -fmad=false -ftz=false -prec-div=true -prec-sqrt=true}
PTX_ARCH=${PTX_ARCH:-compute_90}
known=$("$NVCC" --list-gpu-arch 2>/dev/null)

if ! command -v "$NVCC" >/dev/null 2>&1; then
  echo "skip ptx: there is no $NVCC"
  echo "0 passed, 0 failed"
  exit 0
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
passed=0
failed=0

# The flags without those that choose architectures, of which PTX can have but one.
flags_of() {
  skip=no
  for word in $1; do
    if [ $skip = yes ]; then
      skip=no
      continue
    fi
    case $word in
      -arch | -code | -gencode | --gpu-architecture | --gpu-code | --generate-code) skip=yes ;;
      -arch=* | -code=* | -gencode=* | --gpu-architecture=* | --gpu-code=* | --generate-code=*) ;;
      *) printf '%s ' "$word" ;;
    esac
  done
}

cat >"$folder/mark_fma.h" <<'STOP'
#include <cuda_runtime.h>
extern "C" __device__ float petroglyph_written_fma(float, float, float);
#define __fmaf_rn petroglyph_written_fma
#define fmaf petroglyph_written_fma
#define __builtin_fmaf petroglyph_written_fma
STOP

# Prints "REASON: FUNCTION, FILE:LINE: INSTRUCTION" for each instruction that may not be there. -v marked=1: only fma.
cat >"$folder/lint.awk" <<'STOP'
function report(reason) { found[++count] = reason; line[count] = place; function_of[count] = name; text[count] = $0 }
# x > c ? x : c is max.f32 for every x where c is a number and not −0; x < c ? x : c is min.f32 where c is not +0.
function exact_constant(word) {
  return word ~ /^(max|min)\.f32$/ && /, *0f[0-9A-Fa-f]+/ && (!/0f[7Ff][Ff][89A-Fa-f]/ || /0f[7Ff][Ff]800000/) &&
         !index($0, word ~ /^max/ ? "0f80000000" : "0f00000000")
}
function check(word) {
  if (marked) {
    if (word ~ /^(fma|mad)\..*f(32|32x2|64)$/) report("fused multiply-add that is not written")
  } else if (word ~ /\.(approx|full)/) report("not correctly rounded")
  else if (word ~ /\.ftz/) report("drops subnormals")
  else if (word ~ /^(atom|red|redux)\..*f(16|32|64)/) report("float atomic")
  else if (word ~ /^(max|min)\..*f(32|64)$/ && !exact_constant(word)) report("max or min that may differ")
  else if (word ~ /mma|^tcgen05/ || word ~ /\.(b?f16(x2)?|tf32|e[0-9]m[0-9])/) report("narrower than float")
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
    split(line[i], at, " ")
    where = file[at[1]]
    gsub(/"/, "", where)
    print found[i] ": " function_of[i] ", " where ":" at[2] ": " text[i]
  }
}
STOP

# Those of PTX_ARCH that this nvcc knows: new ones come, old ones go.
archs=
for arch in $PTX_ARCH; do
  case " $(echo $known) " in *" $arch "*) archs="$archs $arch" ;; esac
done
if [ -z "$archs" ]; then
  echo "FAIL ptx: $NVCC knows none of $PTX_ARCH"
  echo "0 passed, 1 failed"
  exit 1
fi
last_arch=${archs##* }

readable() {
  if command -v c++filt >/dev/null 2>&1; then c++filt; else cat; fi
}

# compile FLAGS FILE OUTPUT ARCHITECTURE: to PTX with lines of the source. What nvcc says stands in OUTPUT.log.
compile() {
  # shellcheck disable=SC2086
  "$NVCC" $1 -arch="$4" -lineinfo -ptx "$2" -o "$3" >"$3.log" 2>&1
}

# findings FLAGS FILE: prints the offending lines; fails where the file does not compile. An fma that is not written is looked
# for in the PTX of one architecture: it comes from the compiler's first half, which knows none.
findings() {
  compile "$1 -rdc=true -include $folder/mark_fma.h" "$2" "$folder/marked.ptx" "$last_arch" &
  compiling=$!
  for arch in $archs; do
    compile "$1" "$2" "$folder/plain_$arch.ptx" "$arch" &
    compiling="$compiling $!"
  done
  compiled=yes
  for process in $compiling; do wait "$process" || compiled=no; done
  if [ $compiled = no ]; then
    cat "$folder"/*.ptx.log
    return 1
  fi
  {
    for arch in $archs; do awk -v marked=0 -f "$folder/lint.awk" "$folder/plain_$arch.ptx"; done
    awk -v marked=1 -f "$folder/lint.awk" "$folder/marked.ptx"
  } | readable | sed "s|$PWD/||" | sort -u
}

# fail NAME LINES REPEAT
fail() {
  failed=$((failed + 1))
  printf '%s\n' "$2" | head -n 8 | sed "s|^|FAIL ptx $1: |"
  more=$(($(printf '%s\n' "$2" | wc -l) - 8))
  [ $more -le 0 ] || echo "     and $more more"
  echo "     repeat: $3"
}

lint() {
  if ! lines=$(findings "$(flags_of "$NVCCFLAGS")" "$1"); then
    fail "$1" "$lines" "$NVCC $NVCCFLAGS -ptx $1"
    return
  fi
  notes=$(printf '%s\n' "$lines" | grep -c '^note: ')
  lines=$(printf '%s\n' "$lines" | grep -v '^note: ')
  if [ -n "$lines" ]; then
    fail "$1" "$lines" "NVCCFLAGS='$NVCCFLAGS' $0 $1"
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
  x[0] = __fmaf_rn(y[0], y[1], y[2]) / y[3] + sqrtf(y[4]) * (1.0f / y[5]) - fmaf(y[6], y[7], y[8]);
  x[1] = y[0] * y[1] + y[2];
  x[2] = (y[3] > 0.0f ? y[3] : 0.0f) + (y[4] < 2.0f ? y[4] : 2.0f) + (float)(m % n) + (float)((unsigned)y[4] / n) + (float)(long long)y[5];
}
STOP
echo '__global__ void contracted(float* x) { x[0] = x[1] * x[2] + x[3]; }' >"$folder/contracted.cu"

self_check() {
  flags=$(flags_of "$NVCCFLAGS")
  found=$(findings "$flags" "$folder/bad.cu")
  wrong=
  for rule in not_correctly_rounded drops_subnormals float_atomic rounded_otherwise may_be_contracted \
    mad_instead_of_fma narrower_than_float max_or_min_that_may_differ fused_multiply_add_that_is_not_written note; do
    words=$(echo $rule | tr _ ' ' | sed 's/multiply add/multiply-add/')
    printf '%s\n' "$found" | grep -q "^$words.*: $rule(" || wrong="$wrong $rule was not found;"
  done
  printf '%s\n' "$found" | grep -q ': good(' && wrong="$wrong the good kernel was found;"
  flags=$(printf '%s' "$flags" | sed 's/-fmad=false//')
  findings "$flags" "$folder/contracted.cu" | grep -q '^fused multiply-add that is not written: contracted(' ||
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
