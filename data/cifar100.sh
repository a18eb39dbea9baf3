#!/bin/sh
# CIFAR-100 (Krizhevsky 2009), 169 MB: cifar100_train.bin, 50,000 images, and cifar100_test.bin, 10,000.
#   data/cifar100.sh [FOLDER]     default: here
# CIFAR100_URL and CIFAR100_SHA256 name another archive of the same layout.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
archive=$folder/cifar-100-binary.tar.gz
"$here/fetch.sh" "${CIFAR100_URL:-https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz}" "$archive" \
  "${CIFAR100_SHA256:-58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec}"
unpacked=$(mktemp -d "$folder/cifar100.XXXXXX")
trap 'rm -rf "$unpacked"' EXIT
trap 'exit 1' HUP INT TERM
tar -xzf "$archive" -C "$unpacked"
mv "$unpacked/cifar-100-binary/train.bin" "$folder/cifar100_train.bin"
mv "$unpacked/cifar-100-binary/test.bin" "$folder/cifar100_test.bin"
echo "./train_image --data $folder/cifar100_train.bin --test $folder/cifar100_test.bin"
