#!/bin/sh
# CIFAR-5M (Nakkiran, Neyshabur and Sedghi 2021; github.com/preetum/cifar5m): six parts of 1,000,448 images, 3.1 GB each.
#   data/cifar5m.sh [FOLDER [PART…]]     default: here, parts 0 to 5; its authors test on part 5
# CIFAR5M_URL names another place that has part0.npz and so on.
#
# Needs unzip. Nobody publishes checksums of these files: each member's CRC-32 is checked instead. ./train_image maps members that are
# stored; a part that came compressed is stored anew.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 0 1 2 3 4 5
command -v unzip > /dev/null || { echo "cifar5m.sh: unzip is not here" >&2; exit 1; }
unpacked=
trap 'rm -rf "$unpacked"' EXIT
trap 'exit 1' HUP INT TERM
for part; do
  file=$folder/cifar5m_part$part.npz
  "$here/fetch.sh" "${CIFAR5M_URL:-https://storage.googleapis.com/gresearch/cifar5m}/part$part.npz" "$file" -
  unzip -tqq "$file" > /dev/null || { rm "$file"; echo "$file: damaged, and removed; get it again" >&2; exit 1; }
  if unzip -v "$file" | grep -q ' Defl:'; then
    command -v zip > /dev/null || { echo "$file: is compressed, and zip, which stores it anew, is not here" >&2; exit 1; }
    unpacked=$(mktemp -d "$folder/cifar5m.XXXXXX")
    unzip -q "$file" -d "$unpacked"
    (cd "$unpacked" && zip -q -0 stored.zip X.npy Y.npy)
    mv "$unpacked/stored.zip" "$file"
    rm -rf "$unpacked"
  fi
done
echo "./train_image --data $(for part; do printf '%s,' "$folder/cifar5m_part$part.npz"; done | sed 's/,$//') --test …"
