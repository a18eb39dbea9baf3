#!/bin/sh
# The files of a room that does not compute are compiled as one: two functions of one name in their unnamed namespaces are an error of the
# compiler, or, where their arguments differ, overloads of each other that nobody meant. Fails on both, wherever they stand.
#
#   test/names.sh [FOLDER]      src without an argument
set -u
folder=${1:-src}

find "$folder" -name '*.cpp' | grep -vE "^$folder/(cpu|gpu|math|programs)/" | sort | xargs awk '
  FNR == 1 { unnamed = 0 }
  /^namespace \{$/ { unnamed = 1 }
  /^}  \/\/ namespace$/ { unnamed = 0 }
  # a definition or declaration at the left margin: the last word before its first parenthesis
  unnamed && /^[A-Za-z].*\(/ && !/^(namespace|struct|class|enum|using|template|#)/ && !/^[^(]*=/ {
    name = $0
    sub(/\(.*/, "", name)
    if (name ~ /::/ && name ~ /::[A-Za-z_~]+$/) next  # a member
    sub(/.*[ *&]/, "", name)
    room = FILENAME
    sub(/\/[^\/]*$/, "", room)
    if (!((room, name) in first)) { first[room, name] = FILENAME; ++passed }
    else if (first[room, name] != FILENAME) {
      ++failed
      print "FAIL " FILENAME ":" FNR ": " name "() is also a function of " first[room, name] ": expected names of their own in a room"
    }
  }
  END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 || passed == 0 }'
