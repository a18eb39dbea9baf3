#!/bin/sh
# Reads what ptxas made of the kernels' PTX: the last link that a test can see without a GPU.
#
#   NVCC=nvcc test/sass.sh build/ptx/compute_90/*.ptx
#
# Each file is assembled for its architecture and taken apart again. A kernel may have
#   - no more registers than its largest block can have: that of its __launch_bounds__, 256 threads without (test/ptx holds
#     every launch to it)
#   - no registers spilled to memory, and no arrays there
#   - no more fused multiply-adds than its PTX has, and for each division, reciprocal and root of floats the at most 20 of
#     its correctly rounded sequence; but where ptxas unrolled a loop, which leaves no sum and no product fewer
#   - .FTZ and approximate instructions (MUFU) only in the sequences of divisions and roots, of integers too
#   - for compute capability 9.0, in the loop of a product at most 1.25 bank cycles for each fused multiply-add
#     (sass_banks.awk); in other code ptxas gives registers in another order: for 12.0 up to 1.26, for 7.5 up to 1.47, for
#     8.0 up to 1.49, and 1.71 in one product
# All but the first two need cuobjdump and nvdisasm of the toolkit. Tools are looked for beside nvcc, where a link to it leads, and on PATH.

set -u

NVCC=${NVCC:-nvcc}
nvcc=$(command -v "${NVCC##* }" 2>/dev/null) && PATH=$(dirname "$nvcc"):$(dirname "$(realpath "$nvcc")"):$PATH
if ! command -v ptxas >/dev/null 2>&1; then
  echo "skip sass: there is no ptxas"
  echo "0 passed, 0 failed"
  exit 0
fi
apart=yes
for tool in cuobjdump nvdisasm; do
  command -v $tool >/dev/null 2>&1 || apart=
done
[ -n "$apart" ] || echo "skip sass: there is no cuobjdump with nvdisasm; only registers and spills are checked"

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
passed=0
failed=0

# Prints "KERNEL: what is wrong" of the PTX, then what ptxas -v says of it, then its SASS.
cat >"$folder/sass.awk" <<'STOP'
FNR == 1 { ++part }
part == 1 && /\.entry / { kernel = $0; sub(/.*\.entry /, "", kernel); sub(/[(].*/, "", kernel); threads[kernel] = 256 }
part == 1 && /^\.maxntid/ { threads[kernel] = $2 * $3 * $4 }
part == 1 && /fma\.rn\.f32/ { ++fma[kernel] }
part == 1 && /(add|sub)\.rn\.f32/ { ++sum[kernel] }
part == 1 && /mul\.rn\.f32/ { ++product[kernel] }
part == 1 && /(div|rcp|sqrt)\.rn\.f32/ { ++division[kernel] }
part == 1 && /(div|rem)\.[us](16|32|64)/ { ++integer[kernel] }
part == 2 && /Compiling entry function/ { kernel = $0; sub(/.*function ./, "", kernel); sub(/. for.*/, "", kernel) }
part == 2 && /bytes spill stores/ && ($1 > 0 || $5 > 0 || $9 > 0) {
  sub(/^ +/, "")
  print kernel ": keeps registers or arrays in memory (" $0 ")"
}
part == 2 && /Used [0-9]+ registers/ { registers = $0; sub(/.*Used /, "", registers); used[kernel] = registers + 0 }
part == 3 && /Function : / { kernel = $3; seen[kernel] = 1 }
part == 3 && /FFMA/ { ++ffma[kernel] }
part == 3 && /FADD/ { ++fadd[kernel] }
part == 3 && /FMUL/ { ++fmul[kernel] }
part == 3 && /\.FTZ/ { ++ftz[kernel] }
part == 3 && /MUFU/ { ++mufu[kernel] }
END {
  for (kernel in threads) {
    if (!(kernel in used)) print kernel ": ptxas does not say how many registers"
    rounded = int((used[kernel] + 7) / 8) * 8
    if (rounded * threads[kernel] > 65536) print kernel ": " used[kernel] " registers for each of " threads[kernel] " threads"
    if (part < 3) continue
    if (!seen[kernel]) print kernel ": not in the SASS"
    if (ffma[kernel] > fma[kernel] + 20 * division[kernel] && (fadd[kernel] < sum[kernel] || fmul[kernel] < product[kernel]))
      print kernel ": " ffma[kernel] " fused multiply-adds, " fma[kernel] + 0 " are written"
    if (division[kernel] + integer[kernel] == 0 && ftz[kernel] > 0) print kernel ": drops subnormals"
    if (division[kernel] + integer[kernel] == 0 && mufu[kernel] > 0) print kernel ": approximates"
  }
}
STOP

findings() {
  arch=$(sed -n 's/^\.target \(sm_[0-9a-z]*\).*/\1/p' "$1")
  ptxas -v -arch="$arch" "$1" -o "$folder/cubin" >"$folder/use" 2>&1 || { cat "$folder/use"; return 1; }
  [ -z "$apart" ] || cuobjdump -sass "$folder/cubin" >"$folder/sass" || return 1
  awk -f "$folder/sass.awk" "$1" "$folder/use" ${apart:+"$folder/sass"}
  [ -z "$apart" ] || [ "$arch" != sm_90 ] || awk -v limit=1.25 -f "${0%/*}/sass_banks.awk" "$folder/sass"
}

# A check of spills that finds nothing proves nothing: this kernel needs 64 registers at once, and has 32.
spilling_kernel() {
  echo '.version 8.0'
  echo '.target sm_80'
  echo '.address_size 64'
  echo '.visible .entry spills(.param .u64 where) .maxnreg 32'
  echo '{ .reg .f32 f<64>; .reg .u64 a; ld.param.u64 a, [where]; cvta.to.global.u64 a, a;'
  awk 'BEGIN { for (i = 0; i < 64; ++i) printf "ld.volatile.global.f32 f%d, [a+%d];\n", i, 4 * i
               for (i = 0; i < 64; ++i) printf "st.volatile.global.f32 [a+%d], f%d;\n", 4 * i, 63 - i }'
  echo 'ret; }'
}
spilling_kernel >"$folder/spills.ptx"
if findings "$folder/spills.ptx" 2>&1 | grep -q '^spills: keeps registers .* [1-9][0-9]* bytes spill stores'; then
  passed=$((passed + 1))
  echo "ok   sass self-check: a spill is found"
else
  failed=$((failed + 1))
  echo "FAIL sass self-check: a spill is not found"
  cat "$folder/use"
fi

for file in "$@"; do
  grep -q '\.entry' "$file" || continue
  if lines=$(findings "$file" 2>&1) && [ -z "$lines" ]; then
    passed=$((passed + 1))
    echo "ok   sass $file"
  else
    failed=$((failed + 1))
    printf '%s\n' "$lines" | head -n 8 | sed "s|^|FAIL sass $file: |"
    echo "     repeat: NVCC=$NVCC $0 $file"
  fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
