# Counts the register-bank cycles per fused multiply-add of the products' innermost loops (src/gpu/product.cuh).
#
#   cuobjdump -sass linear.cubin | awk -v limit=1.25 -f test/sass_banks.awk     prints the loops above the limit
#   cuobjdump -sass linear.cubin | awk -f test/sass_banks.awk                   prints all of them
#
# Registers have two banks, the even and the odd numbers, and each gives one operand a cycle. An instruction takes as
# many cycles as the bank that it reads most, and at least one. An operand is not read again where the instruction
# before it had the same register in the same place and marked it with .reuse.

function close_kernel(  i, j, n, loop, best, bank) {
  for (i = 1; i <= count; ++i) {
    if (target[i] == "" || !(target[i] in line_of) || line_of[target[i]] > i) continue;
    loop = 0
    for (j = line_of[target[i]]; j <= i; ++j) {
      if (j < i && target[j] != "" && line_of[target[j]] <= j && line_of[target[j]] >= line_of[target[i]]) break
      loop += text[j] ~ /^FFMA /
    }
    if (j > i && loop > best) { best = loop; n = i }
  }
  if (best) {
    delete cached
    for (j = line_of[target[n]]; j <= n; ++j) bank += bank_cycles(text[j])
    if (limit == "" || bank / best > limit)
      printf "%s: %.2f bank cycles for each of %d fused multiply-adds of its loop\n", kernel, bank / best, best
  }
  count = 0
  delete target
  delete line_of
}
function bank_cycles(instruction,  word, operands, i, register, known, read, even, odd) {
  if (instruction !~ /^(FFMA|FADD|FMUL) /) { delete cached; return 0 }
  operands = split(instruction, word, /[ ,]+/)
  for (i = 3; i <= operands; ++i) {
    register = word[i]
    if (!match(register, /R[0-9]+/)) { delete cached[i]; continue }
    known = substr(register, RSTART + 1, RLENGTH - 1)
    if (cached[i] != known && !(known in read)) { read[known] = 1; known % 2 ? ++odd : ++even }
    if (register ~ /\.reuse/) cached[i] = known; else delete cached[i]
  }
  if (instruction !~ /^FFMA /) return 0
  return even > odd ? (even > 1 ? even : 1) : (odd > 1 ? odd : 1)
}
/Function : / { close_kernel(); kernel = $3; wanted = kernel ~ /product.*multiply/ }
wanted && /^[ \t]+\/\*[0-9a-f]+\*\// {
  ++count
  address = $1
  gsub(/[\/*]/, "", address)
  sub(/^0*/, "", address)
  line_of[address == "" ? "0" : address] = count
  instruction = $0
  sub(/^[ \t]+\/\*[0-9a-f]+\*\/[ \t]+/, "", instruction)
  sub(/[ \t]*;.*/, "", instruction)
  sub(/^@!?U?P[0-9T]+[ \t]+/, "", instruction)
  text[count] = instruction
  target[count] = ""
  if (instruction ~ /^BRA/ && match(instruction, /0x[0-9a-f]+$/)) {
    target[count] = substr(instruction, RSTART + 2)
    if (target[count] == "") target[count] = "0"
  }
}
END { close_kernel() }
