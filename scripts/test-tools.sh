#!/bin/bash
# Installs the shells that tests talk to, where it can: as root with apt. What is missing afterwards is named; the tests that need it
# skip themselves and say so.
set -eu
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
