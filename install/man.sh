#!/bin/sh
# The man page, made from what the programs say to --help.
#   install/man.sh PROGRAM…      files
set -eu
export PETROGLYPH_COMMAND=petroglyph # how the reader calls them
# Backslashes, and points and apostrophes that begin a line, have a meaning to troff; a hyphen must stay one.
escape() {
  sed 's/\\/\\e/g; s/-/\\-/g; s/^\([.'"'"']\)/\\\&\1/'
}
printf '.TH PETROGLYPH 1 "" "%s"\n' "$("$1" --version | escape)"
printf '.SH NAME\npetroglyph \\- sequence models with the same bits on every machine\n'
printf '.SH SYNOPSIS\n.B petroglyph\n.I PROGRAM\n[options]\n.SH PROGRAMS\n'
section() { # PROGRAM [SUBCOMMAND]
  printf '.SS %s\n.nf\n' "$(echo "${1##*/}${2:+ $2}" | escape)"
  "$@" --help | escape
  printf '.fi\n'
}
for program in "$@"; do
  section "$program"
  for subcommand in $("$program" --help | sed -n '1{/SUBCOMMAND/!q;}; s/^  \([a-z0-9-]*\)  .*/\1/p'); do
    section "$program" "$subcommand"
  done
done
