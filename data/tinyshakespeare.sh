#!/bin/sh
# Tiny Shakespeare (Karpathy 2015), 1.1 MB: tinyshakespeare.txt.
#   data/tinyshakespeare.sh [FOLDER]     default: here
# TINYSHAKESPEARE_URL and TINYSHAKESPEARE_SHA256 name another file.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
file=${1:-$here}/tinyshakespeare.txt
origin=https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt
"$here/fetch.sh" "${TINYSHAKESPEARE_URL:-$origin}" "$file" \
  "${TINYSHAKESPEARE_SHA256:-86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed}"
echo "./train_text --data $file"
