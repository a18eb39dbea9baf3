#!/bin/sh
# What `make` builds again, what it removes and installs. The compiler is a script that writes empty objects.
set -u
passed=0 failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$folder/tree"
cp -R Makefile VERSION src test docs "$folder/tree"
cd "$folder/tree" || exit 1
cat > "$folder/compiler" << 'STOP'
#!/bin/sh
case " $* " in
  *" -dumpmachine "*) echo x86_64-linux-gnu && exit ;;
  *" --version "*) echo compiler 1 && exit ;;
  *" -print-file-name="*) exit ;;
  *" -dM "*) echo "#define __FMA__ 1" && exit ;;
esac
while [ $# -gt 0 ]; do
  [ "$1" != -o ] || out=$2
  last=$1
  shift
done
case $out in
  *.o) : > "$out" && echo "$out: $last" > "${out%.o}.d" ;;
  *) printf '#!/bin/sh\necho petroglyph 0\n' > "$out" && chmod +x "$out" ;;
esac
STOP
chmod +x "$folder/compiler"
made() { env -u MAKEFLAGS -u MAKELEVEL -u CXXFLAGS -u BUILD "${MAKE:-make}" --no-print-directory CXX="$folder/compiler" MPI=0 CUDA=0 "$@" 2>&1; }
check() { # NAME EXPECTED FOUND
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAIL make: $1: expected $2, found $3"; fi
}
works() { made "$@" | grep -cE '  (CXX|LINK) '; }

check "builds" 0 "$(made > /dev/null && test -x train_copy && echo $?)"
check "and nothing a second time" 0 "$(works)"
check "WERROR=1 alone builds nothing" 0 "$(works WERROR=1)"
check "other flags build all" 0 "$(test "$(works CPPFLAGS=-DOTHER)" -gt 100 && echo $?)"
made > /dev/null
check "the contract's flags come last" "-ffp-contract=off" "$(made -n -B CXXFLAGS=-ffp-contract=fast build/cpu/scan.o |
  grep -o -e '-ffp-contract=[a-z]*' | tail -n 1)"
check "a test's warnings are errors" 1 "$(made -n -B test | grep -q -e ' -Werror .*src/cpu/scan.cpp' && echo 1)"
: > src/cpu/new.cpp
made > /dev/null
check "a new source" new.o "$(ar t build/libpetroglyph.a | grep new)"
rm src/cpu/new.cpp
made > /dev/null
check "is removed with its object" "" "$(ar t build/libpetroglyph.a | grep new)"
made BUILD=other tokenize > /dev/null
check "another build leaves the links" build/tokenize "$(readlink tokenize)"
check "and builds in its folder" 0 "$(test -x other/tokenize && echo $?)"
check "a space in BUILD" 1 "$(made BUILD="my build" | grep -c 'BUILD=my build: the name of the build folder must not contain spaces')"
made BUILD=other clean
check "its clean removes it alone" "1 0" "$(test -e other; echo $?) $(test -e train_copy && echo $?)"
mkdir mine && made BUILD=mine clean
check "clean removes no folder that is no build" 0 "$(test -d mine && echo $?)"
check "clean all builds again" "0 0" "$(made clean all > /dev/null && echo $?) $(works)"
printf 'build/base/text.o: src/base/text.cpp\nsrc/base/te' > build/base/text.d
check "clean with a damaged dependency file" 0 "$(made clean > /dev/null && ! test -e build && ! test -L train_copy && echo $?)"

made DESTDIR="$folder/packages" PREFIX="/my usr" install > /dev/null
check "install" "10 0" "$(ls "$folder/packages/my usr/bin" | wc -l) $("$folder/packages/my usr/bin/petroglyph-train_copy" > /dev/null; echo $?)"
check "the compiled headers have no flag of one target" 0 "$(made -B -n build/test/host_run.o | grep c++-header | grep -c cuda_on_host)"
check "help" 1 "$(made help | grep -c '^make test ')"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
