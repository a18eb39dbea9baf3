#!/bin/bash
# Runs the commands of test/documented.txt and compares the weights with those that the documentation names for them. What was done stays
# in runs/check_docs, so that it goes on where it stopped; what needs data that is not there is left out and named.
#   test/check_docs.sh [SECONDS]       only commands that take so many at most
#   AGAIN=1 test/check_docs.sh …       those that passed with another version of the programs, too
#   test/check_docs.sh --consistent    runs nothing: every command and fingerprint of the list stands in its file, and no fingerprint
#                                      in the documentation is without a command
set -u
list=test/documented.txt
root=$PWD
kept=$root/runs/check_docs
passed=0
failed=0
ok() { echo "ok   $1" && passed=$((passed + 1)); }
fail() { echo "FAIL $1" && failed=$((failed + 1)); }
rows() { grep -v '^#' "$list"; }
hashes() { grep -oE '\b[0-9a-f]{16}\b' "$@" | sort -u; }
# A file with its broken commands in one line.
joined() { sed -e ':a' -e '/\\$/N' -e 's/ *\\\n */ /' -e 'ta' "$1"; }

consistent() {
  while IFS='|' read -r _ file weights command; do
    file=$(echo $file)
    command=${command# }
    missing=
    weights=$(echo $weights)
    words=${command// && /$'\n'}
    [ "$weights" != all ] || words="reproduce run $(cut -d' ' -f3 <<< "$command") " # an experiment's page
    while read -r part; do
      joined "$file" | grep -qF -- "$part" || missing=$part
    done <<< "$words"
    if [ "$weights" != all ] && [ -z "$(hashes <<< "$weights")" ]; then
      fail "$list: \"$weights\" of $command: expected weights, or all"
    elif [ -n "$missing" ]; then
      fail "$file does not have the command $missing"
    elif missing=$(for one in $(hashes <<< "$weights"); do grep -qF "$one" "$file" || echo "$one"; done) && [ -n "$missing" ]; then
      fail "$file does not have the weights $missing of $command"
    else
      ok "$file: $command"
    fi
  done < <(rows)
  for file in README.md docs/*.md results/NOTES-*.md; do
    for weights in $(hashes "$file"); do
      if rows | grep -q "$weights"; then ok "$file: $weights"; else fail "$file: $weights has no command in $list"; fi
    done
  done
}

# The weights that a command left, in the folder where it ran: printed, of some of its runs or parts, or all that were recorded.
weights_left() { # EXPECTED
  case "$1" in
  all) cat runs/*/runs.csv | hashes ;;
  *=*) for one in ${1//,/ }; do
      echo "${one%%=*}=$(./inspect info "$(ls -d runs/*/"${one%%=*}" runs/*."${one%%=*}" 2> /dev/null)" | sed -n 's/^weights *//p')"
    done | paste -sd, - ;;
  *) sed -n 's/^weights //p' said | tail -n 1 ;;
  esac
}

run_one() { # FILE EXPECTED COMMAND
  local folder left name="$1: $3"
  folder=$kept/$(echo "$2 $3" | cksum | cut -d' ' -f1)
  if [ -s "$folder/passed" ] && { [ -z "${AGAIN:-}" ] || [ "$(cat "$folder/passed")" = "$version" ]; }; then
    ok "$name (before, by $(cat "$folder/passed"))"
    return
  fi
  for data in $(grep -oE 'data/[a-z0-9_]+\.(txt|bin)' <<< "$3" | sort -u); do
    if [ ! -e "$data" ]; then
      echo "left out: $name: there is no $data (scripts in data/ fetch it)"
      return
    fi
  done
  mkdir -p "$folder" && cd "$folder" || exit 1
  ln -sfn "$root/data" data
  for program in train_copy train_text train_regular train_image scaling generate tokenize convert inspect reproduce; do
    ln -sfn "$root/$program" "$program"
  done
  # What was interrupted goes on, by the programs that began it, where that is one command. All else begins anew.
  local resume= status
  if [ "$(cat begun 2> /dev/null)" != "$version" ] || [ -e ended ] ||
    [ -z "$(find runs -name model.safetensors -o -name runs.csv 2> /dev/null)" ]; then
    rm -rf runs ended
  elif [[ $3 == ./train_* && $3 != *"&&"* ]]; then
    resume=" --resume"
  elif [[ $3 != ./reproduce* ]]; then
    rm -rf runs
  fi
  echo "$version" > begun
  bash -e -c "$3$resume" > said 2>&1
  status=$?
  [ "$status" -eq 130 ] || : > ended
  if [ "$status" -eq 0 ]; then
    left=$(weights_left "$2")
    if [ "$2" = all ]; then
      missing=$(for one in $left; do grep -q "$one" "$root/$1" || echo "$one"; done)
      if [ -n "$left" ] && [ -z "$missing" ]; then echo "$version" > passed && ok "$name: $(wc -w <<< "$left") weights"; else
        fail "$name: not in the file: ${missing:-any weights}"; fi
    elif [ "$left" = "$2" ]; then
      echo "$version" > passed && ok "$name"
    else
      fail "$name: weights $left, expected $2"
    fi
  else
    fail "$name: $(tail -n 1 said)"
  fi
  cd "$root" || exit 1
}

# The programs hear a Ctrl-C, save and end; so does this.
trap 'exit 130' HUP INT TERM
if [ "${1:-}" = --consistent ]; then
  consistent
else
  version=$("$root/inspect" --version)
  while IFS='|' read -r seconds file weights command; do
    [ "$seconds" -gt "${1:-1000000}" ] || run_one $file $weights "${command# }" < /dev/null
  done < <(rows | sort -n)
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
