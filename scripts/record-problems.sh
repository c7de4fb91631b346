#!/bin/bash
# Records the output of real tools for small projects, broken and unbroken, for the tests of the package problems: once through a pipe and once
# through a pty.
# usage: scripts/record-problems.sh [NAME...]     (only runs whose names begin with a NAME)
#
# The tools must be in the PATH, those of npm in $APP/node_modules (npm install in $APP). The script skips runs whose tool is missing, and says so.
# People write the expectations (*.want) by hand after looking at the output; this script does not change them.
set -u
APP=${APP:-/tmp/app}
HERE=$(cd "$(dirname "$0")" && pwd)
OUT=$HERE/../problems/testdata/runs
export PATH=$APP/node_modules/.bin:/usr/bin:$PATH CI= NO_UPDATE_NOTIFIER=1 NEXT_TELEMETRY_DISABLED=1 CHECKPOINT_DISABLE=1 TF_IN_AUTOMATION=
export CARGO_TERM_PROGRESS_WHEN=never LC_ALL=C.UTF-8 GOTOOLCHAIN=local GOFLAGS= GOPROXY=off
unset CI GITHUB_ACTIONS NO_COLOR FORCE_COLOR RUST_BACKTRACE
export TF_CLI_CONFIG_FILE=$APP/terraformrc; mkdir -p "$APP"; : >"$TF_CLI_CONFIG_FILE"
only=("$@")
mkdir -p "$OUT" "$APP"

project() { # NAME: creates an empty project and changes to its directory
	rm -rf "${APP:?}/$1"; mkdir -p "$APP/$1"; cd "$APP/$1" || exit 1
}
file() { mkdir -p "$(dirname "$1")"; cat >"$1"; }
wanted() { [ ${#only[@]} = 0 ] && return; local o; for o in "${only[@]}"; do [[ $1 == "$o"* ]] && return; done; return 1; }
run() { # NAME TOOL COMMAND: records the output of a shell command that needs TOOL
	wanted "$1" || return 0
	command -v "$2" >/dev/null || { echo "left out, no $2: $1" >&2; return 0; }
	if [ "${MODE:-both}" != pty ]; then timeout 120 bash -c "$3" </dev/null >"$OUT/$1.pipe.out" 2>&1; fi
	if [ "${MODE:-both}" != pipe ]; then
		TERM=xterm-256color COLUMNS=120 timeout 120 script -qec "stty cols 120 rows 30; $3" /dev/null < <(sleep 60) >"$OUT/$1.pty.out" 2>&1
	fi
	echo "$1" >&2
}
for family in ${FAMILY:-compiled jvm scripted javascript}; do . "$HERE/record-problems/$family.sh"; done
