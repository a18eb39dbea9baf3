#!/bin/sh
# Which module (folder) of src/ may include which. Reads every #include "…" of a tree and fails on one that points up, sideways into a
# module that is not allowed, or at no file; and on a module that is not in the table.
#
#   test/rooms.sh [FOLDER]      src without an argument
set -u
folder=${1:-src}

# module: the modules that it may include beside itself
table='
base:
math:         base
ops:          base math
reference:    base math ops
cpu:          base math ops
gpu:          base math ops
models:       base math ops
tokenizers:   base math
tasks:        base math tokenizers
figures:      base
train:        base math ops reference cpu gpu models tokenizers tasks figures
exchange:     base math ops cpu models tokenizers train
generation:   base math ops models tokenizers
analysis:     base math ops cpu gpu models tokenizers tasks figures train generation
reproduction: base math ops cpu gpu models tokenizers tasks figures train generation analysis
programs:     base math ops cpu gpu models tokenizers tasks figures train exchange generation analysis reproduction
'

find "$folder" -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) | sort | xargs grep -n '^ *# *include *"' |
  TABLE=$table awk -v folder="$folder" '
    BEGIN {
      rows = split(ENVIRON["TABLE"], row, "\n")
      for (i = 1; i <= rows; ++i) {
        words = split(row[i], word, " ")
        module = word[1]
        sub(":", "", module)
        if (words > 0) allowed[module, module] = known[module] = 1
        for (j = 2; j <= words; ++j) allowed[module, word[j]] = 1
      }
    }
    {
      place = $0
      sub(/: *# *include.*/, "", place)  # FILE:LINE
      file = substr(place, length(folder) + 2)
      module = file
      sub("/.*", "", module)
      split($0, quoted, "\"")
      target = quoted[2]
      if (target ~ /\.inc$/) next  # the Makefile makes it
      other = target
      sub("/.*", "", other)
      if (!(module in known)) why = "the module " module " is not in the table of test/rooms.sh"
      else if (target !~ "/") why = "expected a module before the name of the file"
      else if (!((module, other) in allowed)) why = module "/ may not include " other "/"
      else if ((getline line < (folder "/" target)) < 0) why = "there is no such file"
      else why = ""
      close(folder "/" target)
      if (why == "") ++passed
      else { ++failed; print "FAIL " place ": #include \"" target "\": " why }
    }
    END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 || passed == 0 }'
