# Completion for bash: the words come from the programs' own options, `PROGRAM --completion`. In a checkout: source install/completion.bash
_petroglyph() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} line known
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
  while read -r line; do
    if [[ ${line%% *} == "$before" && $line == *" FILE" ]]; then
      COMPREPLY=($(compgen -f -- "$word"))
      return
    elif [[ ${line%% *} == "$before" && $line == *" "* ]]; then
      COMPREPLY=($(compgen -W "${line#* }" -- "$word"))
      return
    fi
  done <<< "$known"
  COMPREPLY=($(compgen -W "$(cut -d' ' -f1 <<< "$known")" -- "$word"))
  ((${#COMPREPLY[@]} > 0)) || COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _petroglyph petroglyph ./train_copy ./train_text ./train_regular ./train_image ./scaling ./convert ./generate ./tokenize \
  ./inspect ./reproduce
