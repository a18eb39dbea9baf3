#!/bin/sh
# CIFAR-5M (Nakkiran, Neyshabur and Sedghi 2021; github.com/preetum/cifar5m): six parts of 1,000,448 images, 3.1 GB each.
#   data/cifar5m.sh [FOLDER [PART…]]     default: here, parts 0 to 5; its authors test on part 5
# CIFAR5M_URL names another place that has part0.npz and so on.
#
# Needs python3, which makes CIFAR-10's records of them (cifar5m.py). Nobody publishes checksums of these files: the archives' own are
# compared instead.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 0 1 2 3 4 5
command -v python3 > /dev/null || { echo "cifar5m.sh: python3 is not here" >&2; exit 1; }
for part; do
  file=$folder/cifar5m_part$part
  [ -f "$file.bin" ] && continue
  "$here/fetch.sh" "${CIFAR5M_URL:-https://storage.googleapis.com/gresearch/cifar5m}/part$part.npz" "$file.npz" -
  python3 "$here/cifar5m.py" "$file.npz" "$file.bin" || {
    rm -f "$file.bin.part"
    echo "$file.npz: no images were made of it. If it is damaged, remove it and start again." >&2
    exit 1
  }
  rm "$file.npz"
done
echo "./train_image --data $(for part; do printf '%s,' "$folder/cifar5m_part$part.bin"; done | sed 's/,$//') --test …"
