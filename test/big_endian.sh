#!/bin/sh
# Big-endian machines are refused when our files are compiled for one (src/base/checksum.h): by the cross compiler of s390x where it is
# installed, else by the compiler that is given, which is told that its machine is one.
#
#   test/big_endian.sh g++
set -u
if command -v s390x-linux-gnu-g++ > /dev/null; then
  compiler=s390x-linux-gnu-g++
else
  compiler="${*:-g++} -U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__ -Wno-builtin-macro-redefined"
fi
said=$(echo '#include "base/checksum.h"' | $compiler -std=c++17 -Isrc -fsyntax-only -x c++ - 2>&1)
if [ $? -ne 0 ] && echo "$said" | grep -q 'static.*checkpoints are written as the machine holds them'; then
  echo "1 passed, 0 failed"
else
  echo "FAIL $compiler: expected a refusal of big-endian machines, found: $said"
  echo "0 passed, 1 failed"
  exit 1
fi
