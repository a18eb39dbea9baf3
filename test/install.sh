#!/bin/bash
# make install into a folder of its own: the command, its man page, completion, and the version of a git archive.
#   test/install.sh BUILD
set -u
build=$1
passed=0
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
check() { # NAME COMMAND…
  local name=$1
  shift
  if "$@" > "$folder/said" 2>&1; then
    echo "ok   install: $name"
    passed=$((passed + 1))
  else
    echo "FAIL install: $name: $*: $(tail -n 3 "$folder/said")"
    failed=$((failed + 1))
  fi
}
says() { # WORDS COMMAND…
  local words=$1
  shift
  "$@" 2>&1 | grep -qF -- "$words"
}
completes() { # the words of a command line; prints what bash would offer
  (
    source install/completion.bash 2> /dev/null
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _petroglyph
    printf '%s\n' "${COMPREPLY[@]}"
  )
}

check "make install" ${MAKE:-make} --no-print-directory BUILD="$build" PREFIX="$folder/my usr" install-built
petroglyph="$folder/my usr/bin/petroglyph"
check "its version" says "petroglyph $(sed 's/ .*//' VERSION)" "$petroglyph" --version
check "a program's version" says "petroglyph $(sed 's/ .*//' VERSION)" "$petroglyph" inspect --version
check "lists programs" says "  train_copy     Trains a sequence model" "$petroglyph"
check "runs a program" says "Usage: train_copy [options]" "$petroglyph" train_copy --help
check "an unknown one" says "petroglyph: unknown program train_copi, expected one of train_copy, train_text" "$petroglyph" train_copi
interrupted() { # a run that a signal ends says how to go on
  cd "$folder" || return 1
  "$petroglyph" train_copy --length 4 --width 8 --layers 1 --steps 100000000 --stop-at 2 --threads 1 --name here &
  until [ -s runs/here/log.csv ] || ! kill -0 $!; do sleep 0.05; done
  kill -TERM $!
  wait $!
}
check "an interrupted run" says "go on with: petroglyph train_copy --resume --name here" interrupted
page="$folder/my usr/share/man/man1/petroglyph.1"
for program in train_copy train_text inspect "inspect receptive\\\\-field" reproduce "reproduce run"; do
  check "man page: $program" grep -q "^\.SS $program\$" "$page"
done
for option in 'length N' 'evaluate\\-length N'; do # of a program, and of a subcommand
  check "man page: --$option" grep -q "\\\\-\\\\-$option" "$page"
done
check "man page: exit status" grep -q '^\.SH EXIT STATUS$' "$page"
if command -v groff > /dev/null; then
  check "man page: no warning of groff's" test -z "$(groff -k -man -Tutf8 -ww "$page" 2>&1 > /dev/null | head -n 3)"
else
  echo "skip install: man page: there is no groff"
fi
check "completes programs" says train_regular completes "$petroglyph" train_r
check "completes options" says --length completes "$petroglyph" train_copy --len
check "completes choices" says linear_causal_rn completes "$petroglyph" train_copy --model linear_c
check "completes choices behind =" says transformer completes "$petroglyph" train_copy --model = tran
check "completes a file's name behind any other option" says VERSION completes "$petroglyph" train_text --tokenizer VERS
check "completes the file that is read" says VERSION completes "$petroglyph" generate VERS
check "offers options behind a switch" says --length completes "$petroglyph" train_copy --quiet --len
check "completes subcommands" says receptive-field completes "$petroglyph" inspect rec
check "completes their options" says --examples completes "$petroglyph" inspect neurons --ex
check "in a checkout" says --length completes "$build/train_copy" --len
if [ -e .git ] && git rev-parse HEAD > /dev/null 2>&1; then
  git archive HEAD VERSION 2> /dev/null | tar -xO 2> /dev/null > "$folder/archived"
  check "an archive knows its commit" grep -qE '^[0-9.]+ [0-9a-f]{7,} [0-9]{4}-[0-9]{2}-[0-9]{2}$' "$folder/archived"
fi
number=$(sed 's/ .*//' VERSION)
check "CITATION.cff has the version" grep -qx "version: $number" CITATION.cff
check "CHANGELOG.md begins with it" says "## $number" grep -m 1 '^## ' CHANGELOG.md
for page in *.md docs/*.md results/RESULTS.md; do
  for file in $(grep -oE '\]\([a-zA-Z.][^)#]*' "$page" | sed 's/.*(//' | sort -u); do
    [[ $file == http* ]] || check "$page names what there is: $file" test -e "$(dirname "$page")/$file"
  done
done
check "make uninstall" ${MAKE:-make} --no-print-directory BUILD="$build" PREFIX="$folder/my usr" uninstall
check "leaves nothing" test -z "$(find "$folder/my usr" -type f)"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
