#!/bin/sh
# The man page, made from what the programs say to --help.
#   install/man.sh PROGRAM…      files
set -eu
export PETROGLYPH_COMMAND=petroglyph # how the reader calls them
# Backslashes, and points and apostrophes that begin a line, have a meaning to troff; a hyphen must stay one.
escape() {
  sed 's/\\/\\e/g; s/-/\\-/g; s/^\([.'"'"']\)/\\\&\1/'
}
version=$("$1" --version) # a program that fails ends this
printf '.TH PETROGLYPH 1 "" "%s"\n' "$(printf '%s\n' "$version" | escape)"
printf '.SH NAME\npetroglyph \\- sequence models with the same bits on every machine\n'
printf '.SH SYNOPSIS\n.B petroglyph\n.I PROGRAM\n[options]\n.SH PROGRAMS\n'
section() { # PROGRAM [SUBCOMMAND]
  said=$("$@" --help)
  printf '.SS %s\n.nf\n' "$(echo "${1##*/}${2:+ $2}" | escape)"
  printf '%s\n' "$said" | escape
  printf '.fi\n'
}
for program in "$@"; do
  section "$program"
  for subcommand in $("$program" --help | sed -n '1{/SUBCOMMAND/!q;}; s/^  \([a-z0-9-]*\)  .*/\1/p'); do
    section "$program" "$subcommand"
  done
done
cat << 'STOP'
.SH FILES
.TP
.I runs/NAME/
A run: log.csv, model.safetensors (weights, optimizer, step, configuration), previous.safetensors, best.safetensors, curve.svg,
index.html. Several runs that belong together have folders of their own in it, and a group.json.
.SH EXIT STATUS
.TP
.B 0
all was done
.TP
.B 1
something failed; one line says what
.TP
.B 2
a command line that cannot be meant
.TP
.B 130
interrupted; what was done is saved, and a line says how to go on
STOP
