#!/bin/sh
# C4 (Raffel et al. 2020), English, web pages in 1,024 parts of 0.8 GB of text: c4_00000.txt and so on. Needs python3.
#   data/c4.sh [FOLDER [PART…]]     default: here, part 0; valid: the first part of the validation split
# C4_URL names another place that has c4-train.00000-of-01024.json.gz and so on.
#
# We know of no published checksums: the one of the first download is kept in FILE.sha256, and demanded of the next.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 0
for part; do
  part=$(echo "$part" | sed 's/^0*\(.\)/\1/')  # for printf 010 were octal
  if [ "$part" = valid ]; then
    remote=c4-validation.00000-of-00008.json.gz text=$folder/c4_valid.txt
  else
    remote=$(printf 'c4-train.%05d-of-01024.json.gz' "$part") text=$(printf '%s/c4_%05d.txt' "$folder" "$part")
  fi
  file=$folder/$remote
  said=$("$here/fetch.sh" "${C4_URL:-https://huggingface.co/datasets/allenai/c4/resolve/main/en}/$remote" "$file" \
    "$(cat "$file.sha256" 2> /dev/null || echo -)")
  echo "$said"
  # gzip's failure must not go unseen in the pipe: it ends the output with a line that is no document.
  if ! { gzip -dc "$file" || echo damaged; } | python3 "$here/documents.py" > "$text.part"; then
    rm -f "$text.part"
    echo "$file: cannot be read; without it the next try gets it again" >&2
    exit 1
  fi
  case $said in *SHA-256*) echo "${said##* }" > "$file.sha256" ;; esac  # of a file that could be read
  mv "$text.part" "$text"
done
echo "./tokenize --train 32000 --save c4.json --out c4 $folder/c4_0*.txt"
