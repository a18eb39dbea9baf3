# For tests of `make` in which its tools are played, to be read with `.`: a folder for these, bin/, and for the project, tree/, that is
# gone at the end; what passed and what failed.
set -u
passed=0
failed=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$folder/bin" "$folder/tree"

# plays NAME: the program that stands in this function's input.
plays() {
  { echo '#!/bin/sh' && cat; } > "$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}
# played_make ARGUMENT…: make in tree/, where nothing of the caller's own make is known; $environment: a variable that is.
environment=
played_make() {
  env -u MAKEFLAGS -u MAKELEVEL -u CXXFLAGS -u CPPFLAGS -u LDFLAGS -u NVCC -u NVCCFLAGS -u CUDA -u GPU_ARCH -u GPU_PTX -u BUILD -u REAL \
    -u SANITIZE -u ARCH PATH="$folder/bin:$PATH" $environment "${MAKE:-make}" --no-print-directory -C "$folder/tree" "$@" 2>&1
}
passes() { passed=$((passed + 1)); }
fails() { # WORDS
  echo "FAIL $1"
  failed=$((failed + 1))
}
# The count, and the status of the test.
counts() {
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
