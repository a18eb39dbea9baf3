#!/bin/sh
# Gets a file, or fails and leaves nothing that could be taken for it.
#   fetch.sh URL FILE SHA256     a FILE that is there and right is kept; an interrupted download is gone on with
#                                SHA256 -: nobody publishes one; what was found is printed
set -eu
url=$1 file=$2 wanted=$3

sum() {
  if command -v sha256sum > /dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}
download() {
  case $url in
    file://*) cp "${url#file://}" "$1" ;;
    *)
      if command -v curl > /dev/null; then
        answer=$(curl --fail --location --retry 3 --continue-at - --output "$1" --write-out '%{http_code}' "$url") || {
          status=$?
          # Nothing can be gone on with: it is whole already, another file's, or the server has no parts. Then from the start.
          [ -s "$1" ] && { [ "$status" = 33 ] || [ "$answer" = 416 ]; } || return "$status"
          rm "$1"
          curl --fail --location --retry 3 --output "$1" "$url"
        }
      else
        wget --continue --output-document "$1" "$url"
      fi ;;
  esac
}

if [ -f "$file" ] && { [ "$wanted" = - ] || [ "$(sum "$file")" = "$wanted" ]; }; then
  echo "$file: here already"
  exit 0
fi
mkdir -p "$(dirname "$file")"
whole() { [ "$wanted" != - ] && [ -f "$file.part" ] && [ "$(sum "$file.part")" = "$wanted" ]; }
whole || download "$file.part" || { echo "$file: cannot be had from $url" >&2; exit 1; }
found=$(sum "$file.part")
if [ "$wanted" != - ] && [ "$found" != "$wanted" ]; then
  rm "$file.part"
  echo "$file: $url has the SHA-256 $found, expected $wanted" >&2
  exit 1
fi
mv "$file.part" "$file"
echo "$file: SHA-256 $found"
