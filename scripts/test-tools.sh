#!/bin/bash
# Installs what tests talk to, where it can: shells as root with apt, VS Code's agent host with npm. What is missing afterwards is
# named; the tests that need it skip themselves and say so.
set -eu
cd "$(dirname "$0")/.."

peer=../shared/peers/vscode-host.sh host=bin/tools/vscode-host
if [ -f "$peer" ] && [ ! -d "$host/vs/out" ]; then
	rm -rf "$host"
	if ! command -v npm >/dev/null || ! timeout 300 bash "$peer" install "$host" >/dev/null 2>&1; then
		rm -rf "$host"
		echo "not installed, so its tests are skipped: VS Code's agent host (it takes npm and a network)"
	fi
fi
missing() { for tool in bash zsh fish; do command -v "$tool" >/dev/null || echo -n "$tool "; done; }

want=$(missing)
[ -z "$want" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing $want"
	log=$(mktemp)
	# shellcheck disable=SC2086 # several words
	if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $want; } >"$log" 2>&1; then
		tail -n 5 "$log"
	fi
	rm -f "$log"
fi
want=$(missing)
[ -z "$want" ] || echo "not installed, so their tests are skipped: $want"
