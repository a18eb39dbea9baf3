#!/bin/bash
# The version stands where it must, and every link in the documentation leads to a file.
passed=0 failed=0
check() { # NAME COMMAND…
  local name=$1
  shift
  if "$@" > /dev/null; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAIL $name"; fi
}
number=$(sed 's/ .*//' VERSION)
check "CITATION.cff has the version of VERSION" grep -qx "version: $number" CITATION.cff
check "CHANGELOG.md begins with it" grep -q "^## $number" <(grep -m 1 '^## ' CHANGELOG.md)
if [ -e .git ] && git rev-parse HEAD > /dev/null 2>&1; then
  check "an archive of git names its commit" grep -qE '^[0-9.]+ [0-9a-f]{7,} [0-9]{4}-[0-9]{2}-[0-9]{2}$' <(git archive HEAD VERSION | tar -xO)
fi
for page in *.md docs/*.md results/*.md results/*/README.md; do
  for file in $(grep -oE '\]\([a-zA-Z.][^)#]*' "$page" | sed 's/.*(//' | sort -u); do
    [[ $file == http* ]] || check "$page links to $file, which does not exist" test -e "$(dirname "$page")/$file"
  done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
