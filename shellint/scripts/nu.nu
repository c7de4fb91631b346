# tether's shell integration for nushell. It runs after the user's own files and is removed at once because it holds the nonce. What is
# written is OSC 633 with the nonce as the last field:
#
#   D;code  P;Cwd=…  A   when a prompt is due                   hook pre_prompt, the first
#   E;line  C            after Enter, before the line runs      hook pre_execution, the last
#
# nushell writes marks of its own on every key (OSC 133). They have no nonce, so they are only taken out.

rm --permanent --force @FILE@

def __tether_escape []: string -> string {
  let text = $in | str replace --all '\' '\\' | str replace --all ';' '\x3b'
  if $text =~ '[\x00-\x1f\x7f]' {
    $text | split chars | each {|c|
      if $c =~ '[\x00-\x1f\x7f]' { $c | into binary | encode hex | $'\x($in)' } else { $c }
    } | str join
  } else {
    $text
  }
}

$env.config.hooks.pre_prompt = ($env.config.hooks.pre_prompt? | default [] | prepend {||
  let end = ";@NONCE@\u{7}"
  print --no-newline $"\u{1b}]633;D;($env.LAST_EXIT_CODE)($end)\u{1b}]633;P;Cwd=($env.PWD | __tether_escape)($end)\u{1b}]633;A($end)"
})

$env.config.hooks.pre_execution = ($env.config.hooks.pre_execution? | default [] | append {||
  let end = ";@NONCE@\u{7}"
  let line = commandline
  if $line !~ '^\s*(#[^\n]*)?$' { # else nothing runs
    print --no-newline $"\u{1b}]633;E;($line | __tether_escape)($end)\u{1b}]633;C($end)"
  }
})
