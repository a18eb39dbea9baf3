#!/bin/sh
# Prints the version and its commit: of git, or of VERSION, into which `git archive` wrote it. A + marks uncommitted changes.
version=$(sed 's/ .*//' VERSION)
if [ -e .git ] && commit=$(git log -1 --format=%h 2> /dev/null); then
  git diff --quiet HEAD 2> /dev/null || commit=$commit+
  echo "$version, $commit of $(git log -1 --format=%cs)"
else
  sed 's/^\([^ ]*\) \([0-9a-f]\{7,\}\) /\1, \2 of /; s/ .Format.*//' VERSION
fi
