#!/bin/sh
# What `make` makes again, in which order, and what it takes away. The compiler is played: its objects are empty.
#   test/make.sh
. test/played.sh
cp -R Makefile VERSION src test install "$folder/tree"
plays compiler << 'STOP'
case " $* " in
  *" -dumpmachine "*) echo x86_64-linux-gnu && exit ;;
  *" --version "*) echo compiler 1 && exit ;;
  *" -dM "*) echo "#define __FMA__ 1" && exit ;;
esac
while [ $# -gt 0 ]; do
  [ "$1" != -o ] || out=$2
  last=$1
  shift
done
case $out in
  *.o) : > "$out" && echo "$out: $last" > "${out%.o}.d" ;;
  *.gch) : > "$out" ;;
  *) printf '#!/bin/sh\necho petroglyph 0\n' > "$out" && chmod +x "$out" ;;
esac
STOP
made() { played_make CXX="$folder/bin/compiler" MPI=0 CUDA=0 "$@"; }
check() { # NAME EXPECTED FOUND
  if [ "$2" = "$3" ]; then
    passes
  else
    fails "make: $1: expected $2, found $3"
  fi
}
works() { made | grep -cE '  (CXX|LINK) '; }
cd "$folder/tree" || exit 1

check "builds" 0 "$(made > /dev/null && test -x train_copy && echo $?)"
check "and again nothing" 0 "$(works)"
check "with other flags all" 0 "$(test "$(made CPPFLAGS=-DOTHER | grep -c '  CXX ')" -gt 30 && echo $?)"
made > /dev/null
check "flags of the preprocessor, of the compiler where it links, and without -Werror" "1 1 0" \
  "$(made -n -B CPPFLAGS=-DOTHER build/cpu/scan.o | grep -c -e ' -DOTHER .*src/cpu/scan.cpp') $(
    made -n -B CXXFLAGS=-fother build/convert | grep -e '-o build/convert ' | grep -c -e -fother) $(
    made -n -B WERROR=0 build/cpu/scan.o | grep -c -e -Werror)"
: > src/cpu/new.cpp
made > /dev/null
check "a new source" new.o "$(ar t build/cpu.a | grep new)"
rm src/cpu/new.cpp
made > /dev/null
check "is gone with its object" "" "$(ar t build/cpu.a | grep new)"
check "and that is all" 0 "$(works)"
check "clean before all" "0 0" "$(made clean all > /dev/null && echo $?) $(works)"
made BUILD="$folder/other" clean
check "another build's clean" 0 "$(test -e train_copy && echo $?)"
printf 'build/base/room.o: build/base/room.cpp\nsrc/base/te' > build/base/room.d
check "clean of what was cut off" 0 "$(made clean > /dev/null && ! test -e build && ! test -L train_copy && echo $?)"
printf 'include Makefile\nshow:\n\t@echo "$(filter -j%%,$(MAKEFLAGS))"\n' > shown.mk
environment=MAKEFLAGS=-j1
check "one job, the environment says" -j1 "$(made -f shown.mk show)"
environment=
check "five" -j5 "$(made -j5 -f shown.mk show)"

mkdir -p there/bin
chmod 775 there/bin
made PREFIX="$folder/tree/there" install > /dev/null
check "a folder that is there stays as it is" drwxrwxr-x "$(ls -ld there/bin | cut -c 1-10)"
check "with the command" 0 "$(test -x there/bin/petroglyph && echo $?)"
rm build/base/room.o
check "install-built builds nothing" "installed $folder/tree/there/bin/petroglyph" "$(made PREFIX="$folder/tree/there" install-built)"
printf '#!/bin/sh\nexit 1\n' > build/train_copy
check "of programs that do not run there is no page" 0 "$(made PREFIX="$folder/tree/there" install-built > /dev/null || echo 0)"
counts
