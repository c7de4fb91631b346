# tether's shell integration for fish 3.4 and newer.
#
# fish runs this after the user's own files; it is removed at once because it holds the nonce. What is written is OSC 633 with the
# nonce as the last field, to the terminal whatever file descriptor 1 is:
#
#   P;Cwd=…  A       before a prompt is drawn                    event fish_prompt
#   E;line   C       after Enter, before the line runs           event fish_preexec
#   D;code           when it has run                             event fish_postexec
#
# There is no B: it would have to be in fish_prompt, which is the user's function. fish 4 writes marks of its own (OSC 133); ours count
# from the first prompt on, the others are only taken out.

set -g __tether_nonce @NONCE@
command rm -f -- @FILE@

# __tether_mark TEXT writes one mark to the terminal.
function __tether_mark
    builtin printf '\e]633;%s;%s\a' $argv[1] $__tether_nonce >/dev/tty 2>/dev/null
end

# __tether_escape TEXT prints TEXT as the value of a mark: \ ; and control bytes are escaped.
function __tether_escape
    set -l text (builtin string replace --all -- \\ \\\\ $argv[1] | builtin string replace --all ';' '\x3b' | builtin string join '\x0a')
    if builtin string match --quiet --regex '[\x01-\x1f\x7f]' -- $text
        for code in 01 02 03 04 05 06 07 08 09 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f 7f
            set text (builtin string replace --all --regex "\\x$code" "\\\\x$code" -- $text)
        end
    end
    builtin printf %s $text
end

function __tether_prompt --on-event fish_prompt
    __tether_mark "P;Cwd="(__tether_escape $PWD)
    __tether_mark A
end

function __tether_preexec --on-event fish_preexec
    __tether_mark "E;"(__tether_escape $argv[1])
    __tether_mark C
end

function __tether_postexec --on-event fish_postexec
    __tether_mark "D;$status"
end
