#!/bin/sh
# What wikitext2.sh and wikitext103.sh share.
#   wikitext.sh NAME URL SHA256 MEMBERS FOLDER     FOLDER/NAME_train.txt, _valid.txt and _test.txt; in the
#                                                  archive MEMBERS with train, valid and test in place of SPLIT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=$1 url=$2 sha256=$3 members=$4 folder=$5
"$here/fetch.sh" "$url" "$folder/$name.zip" "$sha256"
for split in train valid test; do
  member=$(echo "$members" | sed "s/SPLIT/$split/")
  file=$folder/${name}_$split.txt
  if ! unzip -p "$folder/$name.zip" "$member" > "$file.part"; then
    rm -f "$file.part"
    echo "$folder/$name.zip: cannot unpack $member" >&2
    exit 1
  fi
  mv "$file.part" "$file"
done
echo "./train_text --data $folder/${name}_train.txt --replace --val $folder/${name}_valid.txt"
