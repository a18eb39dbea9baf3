#!/bin/sh
# Finds out how to compile with MPI, and writes the answer as variables for make: MPI_FLAGS and MPI_LIBRARIES, or MPI_LEFT_OUT, the reason
# why MPI is left out. MPI is used only if a program links with it and runs: the wrapper may be for another compiler or C library. The
# answer is kept until the question changes.
#   src/train/probe_mpi.sh FILE 0|1|auto WRAPPER COMPILER AND FLAGS…
file=$1 choice=$2 wrapper=$3
shift 3
shown=$($wrapper -show 2> /dev/null)
question="# $choice $wrapper $* $shown"
[ "$(head -n 1 "$file" 2> /dev/null)" != "$question" ] || exit 0
mkdir -p "$(dirname "$file")" && folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

left_out() {
  printf '%s\nMPI_LEFT_OUT := %s\n' "$question" "$1" > "$file"
  exit 0
}
[ "$choice" != 0 ] || left_out MPI=0
[ -n "$shown" ] || left_out "there is no $wrapper"
# "g++ -I… -L… -lmpi", without the compiler's name and MPI's C++ interface.
flags="" libraries=""
for word in $shown; do
  case $word in
    -I*) flags="$flags -isystem ${word#-I}" ;;
    -lmpi_cxx | -lmpicxx) ;;
    -L* | -l* | -Wl,*) libraries="$libraries $word" ;;
  esac
done
cat > "$folder/probe.cpp" << 'STOP'
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
int main() {
  int started = 1;
  return MPI_Initialized(&started) != MPI_SUCCESS || started;
}
STOP
if ! "$@" $flags -o "$folder/probe" "$folder/probe.cpp" $libraries 2> "$folder/errors"; then
  left_out "a program does not link with $wrapper's flags: $(grep -m 1 -i error "$folder/errors" | tr -d '#$' | cut -c 1-160)"
fi
"$folder/probe" > /dev/null 2>&1 || left_out "a program that is linked with $wrapper's flags does not run"
printf '%s\nMPI_FLAGS := -DPETROGLYPH_MPI%s\nMPI_LIBRARIES := %s\n' "$question" "$flags" "$libraries" > "$file"
