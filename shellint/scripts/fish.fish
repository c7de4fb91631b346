# tether's shell integration for fish 3.4 and newer.
#
# fish runs this after the user's own files; it is emptied at once because it holds the nonce. What is written is OSC 633 with the
# nonce as the last field, to the terminal whatever file descriptor 1 is:
#
#   P;Cwd=…  A       before a prompt is drawn                    event fish_prompt
#   E;line   C       after Enter, before the line runs           event fish_preexec
#   D;code           when it has run                             event fish_postexec
#
# There is no B: it would have to be in fish_prompt, which is the user's function. fish 4 writes marks of its own (OSC 133); ours count
# from the first prompt on, the others are only taken out.

set -g __tether_nonce @NONCE@
echo -n >@FILE@

# __tether_mark MARK… writes marks to the terminal.
function __tether_mark
    builtin printf '\e]633;%s;'$__tether_nonce'\a' $argv >/dev/tty 2>/dev/null
end

# __tether_escape TEXT puts TEXT into __tether_text as the value of a mark: \ ; and control bytes are escaped.
function __tether_escape
    set -g __tether_text $argv[1]
    if builtin string match --quiet --regex '[\\\\;\x01-\x1f\x7f]' -- $__tether_text
        set __tether_text (builtin string replace --all \\ \\\\ -- $__tether_text | builtin string replace --all ';' '\x3b' | builtin string join '\x0a')
        if builtin string match --quiet --regex '[\x01-\x1f\x7f]' -- $__tether_text
            for code in 01 02 03 04 05 06 07 08 09 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f 7f
                set __tether_text (builtin string replace --all --regex "\\x$code" "\\\\x$code" -- $__tether_text)
            end
        end
    end
end

function __tether_prompt --on-event fish_prompt
    __tether_escape $PWD
    __tether_mark "P;Cwd=$__tether_text" A
end

function __tether_preexec --on-event fish_preexec
    builtin string match --quiet --regex '^\s*(#[^\n]*)?$' -- $argv[1]
    and return # nothing runs
    __tether_escape $argv[1]
    __tether_mark "E;$__tether_text" C
end

function __tether_postexec --on-event fish_postexec
    __tether_mark "D;$status"
end
