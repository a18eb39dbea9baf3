#!/bin/sh
# WikiText-2 (Merity et al. 2016), 13 MB of Wikipedia's good articles: wikitext2_train.txt, _valid.txt, _test.txt.
#   data/wikitext2.sh [FOLDER [raw]]     default: here; raw: before words were cut off and rare ones became <unk>
# WIKITEXT2_URL and WIKITEXT2_SHA256 name another archive of the same layout.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
origin=https://wikitext.smerity.com # one of its authors; the first address, at Amazon, is dead
if [ "${2:-}" = raw ]; then
  exec "$here/wikitext.sh" wikitext2_raw "${WIKITEXT2_URL:-$origin/wikitext-2-raw-v1.zip}" \
    "${WIKITEXT2_SHA256:-ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11}" \
    wikitext-2-raw/wiki.SPLIT.raw "${1:-$here}"
fi
exec "$here/wikitext.sh" wikitext2 "${WIKITEXT2_URL:-$origin/wikitext-2-v1.zip}" \
  "${WIKITEXT2_SHA256:-92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c}" \
  wikitext-2/wiki.SPLIT.tokens "${1:-$here}"
