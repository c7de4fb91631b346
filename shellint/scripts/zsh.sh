# tether's shell integration for zsh 5.1 and newer.
#
# zsh reads this as its first start-up file of the user's, because ZDOTDIR names its folder. It sets ZDOTDIR to what it was, reads
# the user's .zshenv, and zsh itself goes on with the user's other files. This file is removed at once because it holds the nonce.
# What is written is OSC 633 with the nonce as the last field, to the terminal whatever file descriptor 1 is:
#
#   D;code          first thing after a line ran                in PROMPT_EOL_MARK, and again by __tether_precmd
#   P;Cwd=…         when a prompt is due                        __tether_precmd, first in precmd_functions
#   A … B           around the prompt                           in PROMPT; __tether_prompt, last in precmd_functions
#   E;line  C       after Enter, before the line runs           __tether_preexec, first in preexec_functions
#
# zsh prints PROMPT_EOL_MARK and a line of spaces (prompt_sp) before it runs any hook, so the end of the output has to be marked in
# there. What it prints there is lost when a background job ends in that moment, so the hook says the end once more: the second D of
# a line means nothing. PROMPT_EOL_MARK is ours only while a line runs, PROMPT only while one is edited: user code does not meet the
# nonce in them.
#
# The user's code is a stranger here: no option is relied on, each function is parsed before an alias of the user's exists, and set -x
# has its output thrown away.

typeset -g +x __tether_nonce=@NONCE@
() {
  if builtin zmodload -F zsh/files b:zf_rm 2>/dev/null; then
    zf_rm -f -- @FILE@
    builtin zmodload -u zsh/files
  else
    command rm -f -- @FILE@
  fi
}
@RESTORE@

typeset -g __tether_ran=      # set while a line is running
typeset -g __tether_eol=      # our PROMPT_EOL_MARK, while it is set
typeset -g __tether_eol_user= # the user's, if it was set
typeset -g __tether_start=$'%{\e]633;A;'$__tether_nonce$'\a%}'
typeset -g __tether_end=$'%{\e]633;B;'$__tether_nonce$'\a%}'

# __tether_mark TEXT writes TEXT to the terminal, even if the user has a function named builtin.
__tether_mark() {
  if (( ${+functions[builtin]} )); then
    (unset -f builtin print; builtin print -rn -- "$1" >/dev/tty)
  else
    builtin print -rn -- "$1" >/dev/tty
  fi
} 2>/dev/null

# __tether_escape TEXT puts TEXT into REPLY as the value of a mark: \ ; and control bytes are escaped.
__tether_escape() {
  REPLY=${1//\\/\\\\}
  REPLY=${REPLY//;/\\x3b}
  REPLY=${REPLY//$'\n'/\\x0a}
  if [[ $REPLY == *[$'\x01'-$'\x1f\x7f']* ]]; then
    local c
    for c in {$'\x01'-$'\x1f'} $'\x7f'; do
      REPLY=${REPLY//$c/\\x${(l:2::0:)$(( [##16] #c ))}}
    done
  fi
}

# __tether_precmd is the first hook of a prompt.
__tether_precmd() {
  local code=$? percent=
  if [[ -o promptpercent ]]; then percent=1; fi
  builtin emulate -L zsh
  builtin setopt brace_ccl no_multibyte no_xtrace
  local REPLY marks=
  if [[ -n $__tether_ran ]]; then
    __tether_ran=
    marks=$'\e]633;D;'$code\;$__tether_nonce$'\a'
  fi
  __tether_restore
  __tether_escape "${PWD-}"
  __tether_mark "$marks"$'\e]633;P;Cwd='"$REPLY;$__tether_nonce"$'\a'
  if [[ ${precmd_functions[1]-} != __tether_precmd || ${precmd_functions[-1]-} != __tether_prompt ]]; then
    precmd_functions=(__tether_precmd "${(@)precmd_functions:#__tether_*}" __tether_prompt)
    __tether_prompt_as $percent # zsh goes on with the list as it was
  fi
} 2>/dev/null

# __tether_restore takes what is ours out of PROMPT and PROMPT_EOL_MARK.
__tether_restore() {
  if [[ ${PROMPT-} == *$__tether_nonce* ]]; then
    PROMPT=${PROMPT//"$__tether_start"/}
    PROMPT=${PROMPT//"$__tether_end"/}
  fi
  if [[ -n $__tether_eol && ${PROMPT_EOL_MARK-} == "$__tether_eol" ]]; then
    if [[ -n $__tether_eol_user ]]; then
      PROMPT_EOL_MARK=${__tether_eol_user#.}
    else
      builtin unset PROMPT_EOL_MARK
    fi
  fi
  __tether_eol=
}

# __tether_prompt is the last hook of a prompt. An exported prompt would carry the nonce to programs.
__tether_prompt() {
  local percent=
  if [[ -o promptpercent ]]; then percent=1; fi
  builtin emulate -L zsh
  __tether_prompt_as $percent
} 2>/dev/null

# __tether_prompt_as [1] does it where prompts expand percent signs (1) or not.
__tether_prompt_as() {
  if [[ -n ${1-} && ${(t)PROMPT} != *(export|readonly)* ]]; then
    if [[ $PROMPT != "$__tether_start"*"$__tether_end" ]]; then PROMPT=$__tether_start$PROMPT$__tether_end; fi
  else
    __tether_mark $'\e]633;A;'$__tether_nonce$'\a\e]633;B;'$__tether_nonce$'\a'
  fi
  if [[ ${preexec_functions[1]-} != __tether_preexec ]]; then
    preexec_functions=(__tether_preexec "${(@)preexec_functions:#__tether_*}")
  fi
}

# __tether_preexec LINE runs after Enter.
__tether_preexec() {
  local code=$?
  builtin emulate -L zsh
  builtin setopt brace_ccl no_multibyte no_xtrace
  local REPLY marks=
  __tether_restore
  if [[ -n $__tether_ran ]]; then marks=$'\e]633;D;'$code\;$__tether_nonce$'\a'; fi
  if [[ -n ${1-} ]]; then
    __tether_escape "$1"
    marks+=$'\e]633;E;'"$REPLY;$__tether_nonce"$'\a'
  fi
  __tether_mark "$marks"$'\e]633;C;'$__tether_nonce$'\a'
  __tether_ran=1
  if [[ ${(t)PROMPT_EOL_MARK} != *(export|readonly)* ]]; then
    __tether_eol_user=${PROMPT_EOL_MARK+.$PROMPT_EOL_MARK}
    __tether_eol=$'%{\e]633;D;%?;'$__tether_nonce$'\a%}'${PROMPT_EOL_MARK-%B%S%#%s%b}
    PROMPT_EOL_MARK=$__tether_eol
  fi
  if [[ ${precmd_functions[1]-} != __tether_precmd ]]; then
    precmd_functions=(__tether_precmd "${(@)precmd_functions:#__tether_*}" __tether_prompt)
  fi
} 2>/dev/null

precmd_functions+=(__tether_precmd)
preexec_functions+=(__tether_preexec)

# A system-wide file that sets ZDOTDIR only if it is unset has met ours.
if [[ -z ${ZDOTDIR-} ]]; then
  for __tether_file in /etc/zshenv /etc/zsh/zshenv; do
    if [[ -r $__tether_file && $(<$__tether_file) == *ZDOTDIR* ]]; then source $__tether_file; fi
  done
  builtin unset __tether_file
fi
if [[ -r ${ZDOTDIR-$HOME}/.zshenv ]]; then
  source ${ZDOTDIR-$HOME}/.zshenv
fi
