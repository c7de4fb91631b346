# tether's shell integration for bash 3.2 and newer.
#
# bash reads this file in place of ~/.bashrc; it is emptied at once because it holds the nonce. Below are the marks, then the
# user's own start-up files, then the hooks. What is written is OSC 633 with the nonce as the last field, to the terminal whatever
# file descriptor 1 is:
#
#   D;code  P;Cwd=…      first thing when a prompt is due       __tether_first, in PROMPT_COMMAND
#   A … B                around the prompt                      in PS1
#   E;line  C            after Enter, before the line runs      __tether_start, in PS0; PS2 counts lines
#
# PS0 exists since 4.4 and is expanded only while promptvars is on; else a DEBUG trap does its work. PS1, PS0 and PROMPT_COMMAND
# name only variables that are not exported: a shell that inherits them finds nothing and prints nothing.
#
# Where ble.sh reads the lines, its hook PREEXEC does the work of PS0. Lines that were typed ahead are all in the history before
# ble.sh runs the first, and it expands PS0 only once for them: the last entry would be another's line.
#
# The user's code is a stranger here: it may set -eux, trap DEBUG and ERR, redefine every command, and change each variable
# at any time. So nothing below relies on a command that fails, on an option, or on the hooks still being in place.

__tether_nonce=@NONCE@
export -n __tether_nonce
__tether_file=@FILE@
: >|"$__tether_file" # bash has read it; rm would cost a process

__tether_on=1      # names in prompts are used only if this is set
__tether_ran=      # set while a line is running: PS0 sets it, the next prompt clears it
__tether_hist=     # number of the last history entry at the last prompt or line, -1 if unknown
__tether_cuts=()   # where the history entry of the line being typed ended each time PS2 was due
__tether_cut=0     # their number
__tether_seen=     # text of the last history entry then, if HISTCONTROL has erasedups
__tether_after=    # what __tether_last wants done outside of a function, where DEBUG traps can be read and set
__tether_trapped=0 # whether the DEBUG trap is in use
__tether_armed=0   # DEBUG only: a prompt was shown and no line started since

__tether_blehook=  # ble.sh calls __tether_ble
__tether_modern=   # PS0 exists
__tether_array=    # PROMPT_COMMAND may be an array, and is no text in the environment
__tether_recent=   # HISTCMD is right after Enter
__tether_nested=   # a command substitution in PS2 does not disturb the line being read
if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404 )); then __tether_modern=@MODERN@; fi
if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501 )); then __tether_array=1 __tether_recent=1; fi
if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 502 )); then __tether_nested=1; fi

# Pieces of prompts. \! is the number of the next history entry. If the hooks were thrown out of PROMPT_COMMAND, PS1 still sees that
# a line ran, and its status.
__tether_ps1_start='\[${__tether_ran:+\e]633;D;$?;$__tether_nonce\a}${__tether_on:+${__tether_on:$((__tether_armed=__tether_trapped,__tether_hist=\!-1,__tether_cut=0)):0}\e]633;A;$__tether_nonce\a}\]'
__tether_ps1_end='\[${__tether_on:+\e]633;B;$__tether_nonce\a}\]'
__tether_ps2='${__tether_on:+${__tether_on:$((__tether_cuts[__tether_cut++]=$(__tether_length 2>/dev/null))):0}}'
__tether_ps0='${__tether_on:+$({ __tether_start "$?"; } 3>&1 4>&2 >/dev/null 2>&1)${__tether_on:$((__tether_ran=1,__tether_hist=${__tether_recent:+${HISTCMD-0}}-1,__tether_cut=0)):0}}'

# Elements of PROMPT_COMMAND. Marks go to file descriptor 3; other output is thrown away,
# because a DEBUG trap or set -x of the user may write some. In a list each element meets the $? of the line; in a string
# the first has to leave it as it was, without being taken for a failure.
__tether_hook_first='{ "${__tether_call_first-:}" "$?"; } >/dev/null 2>&1 3>/dev/tty'
__tether_hook_string='{ "${__tether_call_first-:}" "$?" "$?" && : __tether; } >/dev/null 2>&1 3>/dev/tty'
__tether_hook_last='{ "${__tether_call_last-:}"; \builtin eval "${__tether_after-}"; } >/dev/null 2>&1 3>/dev/tty'
__tether_hook_debug='{ __tether_debug "$?" "$_"; __tether_status "$__tether_arg" && : "$__tether_arg"; } >/dev/null 2>&1'
__tether_trap_end=': "$__tether_arg"' # in place of a trap of the user: $_ stays, and status 0 lets the command run
__tether_call_first=__tether_first
__tether_call_last=__tether_last

# __tether_mark MARK… writes marks. Only the command that writes has its output there.
__tether_mark() {
  if __tether_real; then
    builtin printf "\\e]633;%s;$__tether_nonce\\a" "$@" >&3
  else
    (POSIXLY_CORRECT=1; \unset -f printf; \printf "\\e]633;%s;$__tether_nonce\\a" "$@" >&3)
  fi
}

# __tether_real says whether builtin is bash's own. In POSIX mode unset is, whatever functions there are.
__tether_real() {
  __tether_ok=
  builtin printf -v __tether_ok 1 >/dev/null
  [[ -n $__tether_ok ]]
}

# __tether_escape TEXT puts TEXT into __tether_text as the value of a mark: \ ; and control bytes are escaped.
__tether_escape() {
  __tether_text=${1//\\/\\\\}
  __tether_text=${__tether_text//;/\\x3b}
  __tether_text=${__tether_text//$'\n'/\\x0a}
  if [[ $__tether_text == *[[:cntrl:]]* ]]; then
    __tether_escape_controls
  fi
}

__tether_controls=$'\001\002\003\004\005\006\a\b\t\v\f\r\016\017\020\021\022\023\024\025\026\027\030\031\032\e\034\035\036\037\177'

__tether_escape_controls() {
  for (( __tether_i = 0; __tether_i < ${#__tether_controls}; __tether_i++ )); do
    __tether_char=${__tether_controls:__tether_i:1}
    if [[ $__tether_text == *"$__tether_char"* ]]; then
      builtin printf -v __tether_code '\\x%02x' "'$__tether_char"
      __tether_text=${__tether_text//"$__tether_char"/$__tether_code}
    fi
  done
}

# __tether_history puts the last history entry into __tether_text. A file saves the process of a command substitution, which would be
# half of the time after Enter, and which in a DEBUG trap would make bash forget the status of a pipeline. It is in the private folder,
# and empty again at once.
__tether_history() {
  if ! __tether_real; then
    __tether_text=$(POSIXLY_CORRECT=1; \unset -f history; HISTTIMEFORMAT= \history 1)
  elif __tether_history_print 3>|"$__tether_file"; then
    IFS= builtin read -r -d '' __tether_text <"$__tether_file"
    while [[ $__tether_text == *$'\n' ]]; do __tether_text=${__tether_text%$'\n'}; done # as a command substitution does
    : >|"$__tether_file"
  else
    __tether_text=$(__tether_history_print 3>&1 >/dev/null)
  fi
}

# __tether_history_print writes the last history entry to 3. Where HISTTIMEFORMAT is read-only, the text cannot be told from the time
# before it. (Where it is unset it stays that: once set, bash writes times into the history file.)
__tether_history_print() {
  if [[ -n ${HISTTIMEFORMAT-} ]]; then builtin local HISTTIMEFORMAT=; fi
  if [[ -z ${HISTTIMEFORMAT-} ]]; then builtin history 1 >&3; fi
}

# __tether_entry puts the text of the last history entry into __tether_text and its number into __tether_number.
__tether_entry() {
  __tether_history
  __tether_text=${__tether_text#"${__tether_text%%[0-9]*}"}
  __tether_number=${__tether_text%%[!0-9]*}
  __tether_number=${__tether_number:-0}
  __tether_text=${__tether_text:${#__tether_number}+2} # the number, then * if it was edited, then a space
}

# __tether_line puts the line that is about to run into __tether_text. It fails if that is not certain: the line may not have been
# added to the history, so that the last entry is another's.
__tether_line() {
  if [[ -n ${_ble_attached-} ]]; then return 1; fi
  if [[ :${SHELLOPTS-}: != *:history:* || ${HISTSIZE-} == 0 ]] || (( __tether_hist < 0 )); then return 1; fi
  __tether_entry
  if [[ -z $__tether_text ]]; then return 1; fi
  __tether_moved=$(( __tether_number - __tether_hist ))
  case :${HISTCONTROL-}: in
    *:erasedups:*) if [[ $__tether_text != "$__tether_seen" ]]; then return 0; fi ;;
  esac
  if (( __tether_moved == 1 )); then return 0; fi
  if (( __tether_moved != 0 )); then
    __tether_kept && builtin shopt -q cmdhist # else each line of a command is an entry
    return
  fi
  # Nothing was added: then it was the same line again, unless it may have been left out for another reason.
  case :${HISTCONTROL-}: in *:ignorespace:*|*:ignoreboth:*) return 1 ;; esac
  case :${HISTCONTROL-}: in *:ignoredups:*|*:erasedups:*) [[ -z ${HISTIGNORE-} ]]; return ;; esac
  return 1
}

# __tether_kept says whether each line is added to the history.
__tether_kept() {
  case :${HISTCONTROL-}: in *:ignore*:*) return 1 ;; esac
  [[ -z ${HISTIGNORE-} ]]
}

# __tether_length prints the length in bytes of the last history entry, or 0 if it ends in a backslash: bash takes that out when it adds
# the next line.
__tether_length() {
  builtin local LC_ALL=C
  __tether_entry
  if [[ $__tether_text == *\\ ]]; then __tether_text=; fi
  builtin printf %d "${#__tether_text}"
}

# __tether_uncut brings the line breaks back into __tether_text. Without lithist bash puts "; ", ";" or " " between the lines of a
# compound command, so that nobody could tell them any more.
__tether_uncut() {
  while (( __tether_cut > 0 )); do
    __tether_at=${__tether_cuts[--__tether_cut]}
    if (( __tether_at > 0 && __tether_at < ${#__tether_text} )); then
      __tether_rest=${__tether_text:__tether_at}
      case ${__tether_text:__tether_at-1:1}$__tether_rest in
        $'\n'*|?$'\n'*) ;;
        ?'; '*) __tether_text=${__tether_text:0:__tether_at}$'\n'${__tether_rest:2} ;;
        ?[\;\ ]*) __tether_text=${__tether_text:0:__tether_at}$'\n'${__tether_rest:1} ;;
      esac
    fi
  done
}

# __tether_start STATUS runs after Enter, in a subshell of PS0. File descriptors 3 and 4 are what 1 and 2 were.
__tether_start() {
  if [[ -n ${_ble_attached-} && -n $__tether_blehook ]]; then
    : # __tether_ble has begun the line
  elif [[ -t 4 ]]; then # where bash prints PS0
    __tether_begin "$1"
  else
    __tether_begin "$1" 3>/dev/tty
  fi
}

# __tether_ble LINE is the hook of ble.sh that runs before a line.
__tether_ble() {
  { __tether_begin "$?" "$1"; } >/dev/null 2>&1 3>/dev/tty
  __tether_ran=1
}

# __tether_blehooks puts __tether_ble into the hooks of ble.sh, if that has some.
__tether_blehooks() {
  if [[ -n ${BLE_VERSION-} ]] && builtin declare -F blehook >/dev/null && blehook PREEXEC!=__tether_ble; then __tether_blehook=1; fi
}

# __tether_begin STATUS [LINE] ends the line before, if no prompt came between, and begins one.
__tether_begin() {
  builtin local LC_ALL=C # bytes, and faster
  if [[ -n ${__tether_ran-} ]]; then __tether_mark "D;$1"; fi
  if [[ -n ${2-} ]]; then
    __tether_escape "$2"
    __tether_mark "E;$__tether_text" C
  elif __tether_line; then
    __tether_uncut
    __tether_escape "$__tether_text"
    __tether_mark "E;$__tether_text" C
  else
    __tether_mark C
  fi
}

# __tether_first STATUS [RETURN] is the first hook of a prompt.
__tether_first() {
  if (( __tether_armed )); then __tether_untrapped; fi
  # Not first any more: $? may be another's. PS1 knows better.
  __tether_escape "${PWD-}"
  if [[ -n ${__tether_ran-} && ${PROMPT_COMMAND-} == "$__tether_hook_first"* ]]; then
    __tether_ran=
    __tether_mark "D;$1" "P;Cwd=$__tether_text"
  else
    __tether_mark "P;Cwd=$__tether_text"
  fi
  return "${2-0}"
}

# __tether_last is the last hook of a prompt: it looks after the others.
__tether_last() {
  __tether_blehooks
  if [[ :${BASHOPTS-}: == *:promptvars:* ]] || builtin shopt -q promptvars; then # BASHOPTS is of 4.1
    __tether_prompts
  else
    __tether_plain
  fi
  case :${HISTCONTROL-}: in
    *:erasedups:*) __tether_entry; __tether_seen=$__tether_text ;;
  esac
  __tether_hooks
}

# __tether_prompts sees that PS0 and PS1 have our pieces.
__tether_prompts() {
  if [[ -z $__tether_modern ]]; then
    __tether_arm
  elif [[ ${PS0-} == *"$__tether_ps0"* ]]; then
    __tether_disarm
  elif [[ -n ${PS0+x} && ${PS0@a} == *r* ]]; then
    __tether_arm
  else
    PS0=${PS0-}$__tether_ps0
    __tether_disarm
  fi
  if [[ -n $__tether_nested && ${PS2-} != "$__tether_ps2"* ]] && [[ -z ${PS2+x} || ${PS2@a} != *[rx]* ]]; then
    __tether_strip "${PS2-}"
    __tether_set PS2 "$__tether_ps2$__tether_text"
  fi
  if [[ -n $__tether_modern && -n ${PS1+x} && ${PS1@a} == *[rx]* ]]; then
    __tether_unprompted # programs must not meet our pieces
  elif [[ ${PS1-} != "$__tether_ps1_start"*"$__tether_ps1_end" ]]; then
    __tether_strip "${PS1-}"
    __tether_set PS1 "$__tether_ps1_start$__tether_text$__tether_ps1_end"
    if [[ $PS1 != "$__tether_ps1_start"* ]]; then __tether_unprompted; fi
  fi
}

# __tether_set PS0|PS1|PS2 VALUE assigns. Bash before 4.4 cannot tell that a variable is read-only, but printf -v fails softly.
__tether_set() {
  if [[ -z $__tether_modern ]]; then
    builtin printf -v "$1" %s "$2"
    return
  fi
  case $1 in
    PS0) PS0=$2 ;;
    PS1) PS1=$2 ;;
    PS2) PS2=$2 ;;
  esac
}

# __tether_plain is for promptvars off: prompts are printed as they are, so our pieces have to go.
__tether_plain() {
  __tether_arm
  __tether_strip "${PS0-}"
  if [[ ${PS0-} != "$__tether_text" ]]; then __tether_set PS0 "$__tether_text"; fi
  __tether_strip "${PS1-}"
  if [[ ${PS1-} != "$__tether_text" ]]; then __tether_set PS1 "$__tether_text"; fi
  __tether_strip "${PS2-}"
  if [[ ${PS2-} != "$__tether_text" ]]; then __tether_set PS2 "$__tether_text"; fi
  __tether_unprompted
}

# __tether_unprompted does what PS1 cannot.
__tether_unprompted() {
  __tether_mark A B
  __tether_cut=0
  __tether_armed=$__tether_trapped
  if [[ -n $__tether_recent && -n ${HISTCMD-} ]]; then
    __tether_hist=$(( HISTCMD - 1 ))
  else
    __tether_entry
    __tether_hist=$__tether_number
  fi
}

# __tether_strip PROMPT puts PROMPT without our pieces into __tether_text.
__tether_strip() {
  __tether_text=${1//"$__tether_ps1_start"/}
  __tether_text=${__tether_text//"$__tether_ps1_end"/}
  __tether_text=${__tether_text//"$__tether_ps0"/}
  __tether_text=${__tether_text//"$__tether_ps2"/}
}

# __tether_hooks sees that ours are the first and the last of PROMPT_COMMAND, whatever was put before, after or in place of them.
__tether_hooks() {
  if [[ -z $__tether_array ]]; then
    __tether_hooks_string
    return
  fi
  __tether_list=("${PROMPT_COMMAND[@]-}")
  if [[ ${__tether_list[0]} != "$__tether_hook_first" || ${__tether_list[${#__tether_list[@]}-1]} != "$__tether_hook_last" ]]; then
    __tether_hooks_list
  fi
}

__tether_hooks_list() {
  PROMPT_COMMAND=("$__tether_hook_first")
  for __tether_text in "${__tether_list[@]}"; do
    __tether_unhook "$__tether_text"
    case $__tether_text in
      ''|:) ;;
      *) PROMPT_COMMAND+=("$__tether_text") ;;
    esac
  done
  PROMPT_COMMAND+=("$__tether_hook_last")
}

__tether_hooks_string() {
  __tether_hook_first=$__tether_hook_string
  if [[ ${PROMPT_COMMAND-} == "$__tether_hook_first"$'\n'*"$__tether_hook_last" ]]; then return; fi
  __tether_unhook "${PROMPT_COMMAND-}"
  PROMPT_COMMAND=$__tether_hook_first$'\n'$__tether_text$'\n'$__tether_hook_last
}

# __tether_unhook CODE puts CODE into __tether_text with nothing in place of our hooks.
__tether_unhook() {
  __tether_text=${1//"$__tether_hook_first"/:}
  __tether_text=${__tether_text//"$__tether_hook_string"/:}
  __tether_text=${__tether_text//"$__tether_hook_last"/:}
}

# __tether_arm has the DEBUG trap report the next line. The user's own trap goes on after ours.
__tether_arm() {
  __tether_trapped=1
  __tether_after='__tether_trap=$({ \builtin trap -p DEBUG >&3; } 3>&1 >/dev/null); __tether_chain; \builtin trap -- "$__tether_trap" DEBUG'
}

# __tether_disarm gives the user's trap back.
__tether_disarm() {
  __tether_after=
  __tether_armed=0
  if (( __tether_trapped )); then
    __tether_trapped=0
    __tether_trap=${__tether_trap#"$__tether_hook_debug"?}
    if [[ $__tether_trap == "$__tether_trap_end" ]]; then __tether_trap=-; fi
    __tether_after='\builtin trap -- "$__tether_trap" DEBUG'
  fi
}

# __tether_chain makes of the text of trap -p in __tether_trap the trap that is to be set.
__tether_chain() {
  builtin eval "__tether_args=(${__tether_trap#trap })" # -- 'code' DEBUG
  __tether_trap=${__tether_args[1]-$__tether_trap_end}
  if [[ $__tether_trap != "$__tether_hook_debug"* ]]; then
    __tether_trap=$__tether_hook_debug$'\n'$__tether_trap
  fi
}

# __tether_debug STATUS ARGUMENT runs before each simple command and begins the line with the first one after a prompt. ARGUMENT is $_.
__tether_debug() {
  __tether_code=$1
  __tether_arg=$2
  if (( __tether_armed )) && [[ -z ${_ble_attached-}${READLINE_LINE+x}${COMP_LINE+x} && $BASH_COMMAND != *__tether_* ]]; then
    __tether_armed=0
    __tether_begin "$1" 3>/dev/tty
    __tether_ran=1
    __tether_hist=$(( ${__tether_recent:+${HISTCMD-0}}-1 ))
  fi
}

__tether_status() {
  return "$__tether_code"
}

# __tether_untrapped makes up for a line that is a subshell: bash runs no DEBUG trap for it, or with functrace in it.
__tether_untrapped() {
  __tether_armed=0
  if __tether_line && [[ $__tether_text == \(* ]] && (( __tether_moved != 0 )); then
    if [[ $- != *T* ]]; then __tether_begin 0; fi
    __tether_ran=1
  fi
}

# __tether_install STATUS makes the hooks of what the user's files left.
__tether_install() {
  __tether_attributes=$(\builtin declare -p PROMPT_COMMAND 2>/dev/null)
  __tether_attributes=${__tether_attributes%% PROMPT_COMMAND*}
  if [[ ${__tether_attributes#declare} == *x* ]]; then __tether_array=; fi # programs expect text in the environment
  if [[ ${__tether_attributes#declare} == *r* ]]; then
    __tether_prompts # these do without hooks, while nobody else sets PS1
  else
    __tether_hooks
  fi
  return "$1"
}

if [[ -n @LOGIN@ ]]; then
  if [[ -r /etc/profile ]]; then . /etc/profile; fi
  if [[ -r ~/.bash_profile ]]; then
    . ~/.bash_profile
  elif [[ -r ~/.bash_login ]]; then
    . ~/.bash_login
  elif [[ -r ~/.profile ]]; then
    . ~/.profile
  fi
elif [[ -r ~/.bashrc ]]; then
  . ~/.bashrc
fi
{ __tether_install "$?" && : __tether; } >/dev/null 2>&1 3>/dev/tty
