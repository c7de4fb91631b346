#!/bin/bash
# Records the output of vim, less, htop, tmux, npm init and a Bubble Tea program at a terminal of 80x24, for TestScreensStayTheSame of agent/redact.
# The Bubble Tea program is built in a module of its own, so that the product does not depend on it. The recording of a program that is not
# installed stays as it is.
#   usage: scripts/record-screens.sh
set -eu
cd "$(dirname "$0")/.."
out=$PWD/agent/redact/testdata/screens
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v script >/dev/null || { echo "it takes script, of util-linux"; exit 1; }

cd "$work"
for n in $(seq 1 60); do printf 'func line%d(a, b int) string { return "value %d of 端末" } // a comment\n' "$n" "$n"; done >sample.go
printf 'set -g status-left "[demo] "\nset -g status-right "right"\nset -g default-command "PS1=\\"\\$ \\" sh"\nset -g default-terminal screen-256color\nset -g automatic-rename off\n' >tmux.conf

# record NAME COMMAND KEYS...: types the keys, each a format of printf, 0.3 s apart.
record() {
	local name=$1 command=$2 key
	shift 2
	{
		sleep 1
		for key; do
			# shellcheck disable=SC2059 # keys are formats
			printf "$key"
			sleep 0.3
		done
	} | env -i PATH="$PATH" HOME="$work" TERM=xterm-256color COLORTERM=truecolor LANG=C.UTF-8 \
		timeout 30 script -q -e -O "$name.raw" -c "stty rows 24 cols 80; exec $command" >/dev/null || true
	# script adds a first and a last line.
	sed -e '1{/^Script started/d}' -e '/^Script done/d' "$name.raw" >"$out/$name.raw"
	echo "$name: $(wc -c <"$out/$name.raw") bytes"
}

! command -v vim >/dev/null || record vim "vim -u NONE -N --cmd 'set mouse=a title hlsearch ruler number' --cmd 'syntax on' sample.go" \
	'4j' 'dd' 'iinserted text\033' '/value\r' 'n' ':split\r' '\004' 'u' ':set nonumber\r' ':qa!\r'
! command -v less >/dev/null || record less "less -R -N sample.go" ' ' 'b' '/line4\r' 'n' 'G' 'q'
! { command -v htop && command -v unshare; } >/dev/null || record htop "unshare -pf --mount-proc htop -d 5" '\033OB' 't' 'h' ' ' 'q'
! command -v tmux >/dev/null || record tmux "tmux -L record-screens -f tmux.conf new" \
	'echo one; printf "\\\\033[31mred\\\\033[0m\\\\n"\r' '\002"' 'head -5 sample.go\r' '\002%%' '\002o' '\002[' 'kkk' 'q' '\002:kill-server\r'
if command -v npm >/dev/null; then
	mkdir -p demo
	record npm "sh -c 'cd demo && exec npm init --no-update-notifier'" '' '' '' '' '' '' '' '' '' '' '\r' '1.2.3\r' 'a description\177\177n\r' '\r' 'one two\033[D\033[Dx\r' '\r' 'me\r' '\r' '\r' '\r' 'yes\r' '' ''
	sed -i "s|$work|/home/me|" "$out/npm.raw"
fi
for tool in vim less htop tmux npm go; do
	command -v "$tool" >/dev/null || echo "not installed, so its recording stays: $tool"
done
if command -v go >/dev/null && mkdir -p tea && cp "$out/tea.go.txt" tea/main.go &&
	(cd tea && go mod init tea && go get github.com/charmbracelet/bubbletea@v1 github.com/charmbracelet/lipgloss@v1 && go build -o ../tea.program .) >/dev/null 2>&1; then
	record tea ./tea.program j j k 'q'
fi
