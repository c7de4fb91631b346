#!/bin/bash
# What is typed while ble.sh loads must not get another command's line. Needs ble.sh (BLESH=…/out/ble.sh), tmux and python3.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
export HOME=$TETHER_HOME/home
mkdir -p "$HOME"; cp "$here/bashrc" "$HOME/.bashrc"
try() { # name, seconds before typing, gap between lines
	local mux="tmux -L tc$$"
	$mux -f /dev/null new-session -d -x 100 -y 40 "tether run --name $1 --private -- bash"
	sleep "$2"
	for line in 'echo AAA' false '(exit 9)'; do
		$mux send-keys -l -- "$line"; sleep 0.1; $mux send-keys Enter; sleep "$3"
	done
	sleep 6
	tether commands "$1" --json | python3 -c '
import json, sys
typed = {"echo AAA": 0, "false": 1, "(exit 9)": 9}
got = [(c.get("line"), c.get("exit"), c.get("verified")) for c in json.load(sys.stdin)["commands"]]
wrong = [c for c in got if c[0] is not None and (c[0] not in typed or c[2] and c[1] != typed[c[0]])]
lines = [c[0] for c in got if c[0] is not None]
print("FAIL" if wrong or len(set(lines)) < len(lines) else "PASS", sys.argv[1], got)' "$1"
	$mux kill-server; tether kill "$1" >/dev/null 2>&1
}
try while-it-loads 0.3 0.1
try at-the-prompt 4 1
