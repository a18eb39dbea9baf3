#!/bin/sh
# CIFAR-10 (Krizhevsky 2009), 170 MB: cifar10_train.bin, 50,000 images, and cifar10_test.bin, 10,000.
#   data/cifar10.sh [FOLDER]     default: here
# CIFAR10_URL and CIFAR10_SHA256 name another archive of the same layout.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
archive=$folder/cifar-10-binary.tar.gz
"$here/fetch.sh" "${CIFAR10_URL:-https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz}" "$archive" \
  "${CIFAR10_SHA256:-c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd}"
unpacked=$(mktemp -d "$folder/cifar10.XXXXXX")
trap 'rm -rf "$unpacked"' EXIT
trap 'exit 1' HUP INT TERM
tar -xzf "$archive" -C "$unpacked"
cat "$unpacked"/cifar-10-batches-bin/data_batch_[1-5].bin > "$unpacked/train"
mv "$unpacked/train" "$folder/cifar10_train.bin"
mv "$unpacked/cifar-10-batches-bin/test_batch.bin" "$folder/cifar10_test.bin"
echo "./train_image --data $folder/cifar10_train.bin --test $folder/cifar10_test.bin"
