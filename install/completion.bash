# Completion for bash: the words come from the programs' own options, `PROGRAM --completion`. In a checkout: source install/completion.bash
# The lines of its input become the answers (bash 3.2, of macOS, has no mapfile).
_petroglyph_answers() {
  local answer
  COMPREPLY=()
  while IFS= read -r answer; do COMPREPLY+=("$answer"); done
}
_petroglyph_files() { # WORD
  compopt -o filenames 2> /dev/null
  _petroglyph_answers < <(compgen -f -- "$1")
}
_petroglyph() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} line known
  # bash cuts --model=rnn in three.
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  local -a command=("${COMP_WORDS[0]}")
  # What stands before the first option chooses whose options these are: petroglyph inspect neurons --…
  local i=1
  while ((i < COMP_CWORD)) && [[ ${COMP_WORDS[i]} =~ ^[a-z][a-z0-9_-]*$ ]] && ((i < 3)); do
    "${command[@]}" "${COMP_WORDS[i]}" --completion > /dev/null 2>&1 || break
    command+=("${COMP_WORDS[i]}")
    i=$((i + 1))
  done
  known=$("${command[@]}" --completion 2> /dev/null) || return
  COMPREPLY=()
  while read -r line && [[ ${line%% *} != "$before" ]]; do :; done <<< "$known"
  if [[ $line == --* && $line == *" "* && $line != *" FILE" ]]; then
    _petroglyph_answers < <(compgen -W "${line#* }" -- "$word")
  elif [[ $line == --* && $line != --no-* && $line != --help && $line != --version ]] &&
    ! grep -qx -- "--no-${before#--}" <<< "$known"; then # neither choices nor a switch
    _petroglyph_files "$word"
  else
    _petroglyph_answers < <(compgen -W "$(grep -vx FILE <<< "$known" | cut -d' ' -f1)" -- "$word")
    if [[ $word != -* ]] && { ((${#COMPREPLY[@]} == 0)) || grep -qx FILE <<< "$known"; }; then _petroglyph_files "$word"; fi
  fi
}
complete -F _petroglyph petroglyph ./train_copy ./train_text ./train_regular ./train_image ./scaling ./convert ./generate ./tokenize \
  ./inspect ./reproduce
