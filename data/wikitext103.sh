#!/bin/sh
# WikiText-103 (Merity et al. 2016), 540 MB of Wikipedia's good articles: wikitext103_train.txt, _valid.txt, _test.txt.
#   data/wikitext103.sh [FOLDER [raw]]     default: here; raw: before words were cut off and rare ones became <unk>
# WIKITEXT103_URL and WIKITEXT103_SHA256 name another archive of the same layout.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
origin=https://wikitext.smerity.com # one of its authors; the first address, at Amazon, is dead
if [ "${2:-}" = raw ]; then
  exec "$here/wikitext.sh" wikitext103_raw "${WIKITEXT103_URL:-$origin/wikitext-103-raw-v1.zip}" \
    "${WIKITEXT103_SHA256:-91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794}" \
    wikitext-103-raw/wiki.SPLIT.raw "${1:-$here}"
fi
exec "$here/wikitext.sh" wikitext103 "${WIKITEXT103_URL:-$origin/wikitext-103-v1.zip}" \
  "${WIKITEXT103_SHA256:-242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590}" \
  wikitext-103/wiki.SPLIT.tokens "${1:-$here}"
