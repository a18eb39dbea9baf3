#!/bin/sh
# Fails on two things of one name, which neither the compiler nor the linker reports:
#   - two functions in the unnamed namespaces of a room, wherever they stand. The files of a room that does not compute are compiled as
#     one: that is an error of the compiler, or, where their arguments differ, overloads of each other that nobody meant;
#   - two types, or two functions of the same arguments, that are visible outside their files, also where one of them is inline in a
#     header of the tests: the linker takes one of them for both.
#
#   test/names.sh [FOLDER]      src without an argument, and then the tests' headers, too
set -u
folder=${1:-src}

of_rooms=$(find "$folder" -name '*.cpp' | grep -vE "^$folder/(cpu|gpu|math|programs)/" | sort | xargs awk '
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
  END { printf "%d passed, %d failed\n", passed, failed }')
headers=""
[ "$folder" != src ] || headers=test
of_all=$(find "$folder" $headers \( -name '*.h' -o -name '*.cuh' -o -name '*.cu' -o -path "$folder/*.cpp" -o -path 'test/ptx/*.cpp' \) | sort | xargs awk '
  function parameters(list,   parts, n, i, all, one) {
    n = split(list, parts, ",")
    for (i = 1; i <= n; ++i) {
      one = parts[i]
      sub(/ *=.*/, "", one)
      sub(/^ +/, "", one)
      if (one ~ /[ *&][a-z_0-9A-Z]+$/) sub(/[a-z_0-9A-Z]+$/, "", one)
      gsub(/ /, "", one)
      all = all "," one
    }
    return all
  }
  function defined(key, what) {
    if (!(key in first)) { first[key] = FILENAME; ++passed }
    else if (first[key] != FILENAME) {
      ++failed
      print "FAIL " FILENAME ":" FNR ": " what " is also defined in " first[key] ": expected one definition"
    }
  }
  FNR == 1 { unnamed = 0; inner = "" }
  /^namespace \{$/ { unnamed = 1 }
  /^}  \/\/ namespace$/ { unnamed = 0 }
  /^namespace [a-z_]+ \{$/ && $2 != "petroglyph" { inner = $2 "::" }
  /^}  \/\/ namespace [a-z_]+$/ && $4 "::" == inner { inner = "" }
  unnamed { next }
  /^(struct|class|enum|enum class|union) [A-Za-z_0-9]+( final)?( : [^;]*)? \{/ {
    name = $0
    sub(/^(enum class|struct|class|enum|union) /, "", name)
    sub(/[^A-Za-z_0-9].*/, "", name)
    defined(inner name, inner name)
  }
  /^[A-Za-z].*\) (const )?\{/ && !/^(namespace|struct|class|enum|using|template|static|extern|#)/ && !/^[^(]*=/ {
    name = $0
    sub(/\(.*/, "", name)
    sub(/.*[ *&]/, "", name)
    list = $0
    sub(/^[^(]*\(/, "", list)
    sub(/\) (const )?\{.*/, "", list)
    if (name != "main") defined(inner name "(" parameters(list), inner name "()")
  }
  END { printf "%d passed, %d failed\n", passed, failed }')
printf '%s\n%s\n' "$of_rooms" "$of_all" | awk '
  /^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; next }
  { print }
  END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 || passed == 0 }'
