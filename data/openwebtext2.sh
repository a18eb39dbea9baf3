#!/bin/sh
# OpenWebText2 (Gao et al. 2020), 65 GB of web pages that readers of Reddit liked: openwebtext2.txt. Needs zstd, python3.
#   data/openwebtext2.sh [FOLDER]     default: here
# OPENWEBTEXT2_URL and OPENWEBTEXT2_SHA256 name another archive of the same layout: a .tar of .jsonl.zst files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
archive=$folder/openwebtext2.jsonl.zst.tar
origin=https://huggingface.co/datasets/segyges/OpenWebText2/resolve/main/openwebtext2.jsonl.zst.tar
"$here/fetch.sh" "${OPENWEBTEXT2_URL:-$origin}" "$archive" \
  "${OPENWEBTEXT2_SHA256:-9043d1b93c35ff1a38a17e16c73c009d4617dcaab6da15adc0faf4779739a027}"
# The status of a pipe is its last command's: what fails before it ends its output with a line that is no document.
if ! { tar -xOf "$archive" || echo damaged; } | { zstd -dc || echo damaged; } |
  python3 "$here/documents.py" > "$folder/openwebtext2.txt.part"; then
  rm -f "$folder/openwebtext2.txt.part"
  echo "$archive: cannot be read" >&2
  exit 1
fi
mv "$folder/openwebtext2.txt.part" "$folder/openwebtext2.txt"
echo "./tokenize --train 32000 --save openwebtext2.json --out openwebtext2 $folder/openwebtext2.txt"
