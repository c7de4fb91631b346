#!/bin/bash
# usage: fuzz.sh [TIME]   runs every fuzz target of the project, each for TIME (10s). Minimising is bounded, because otherwise it takes most of TIME.
set -eu
cd "$(dirname "$0")/.."
time=${1:-10s}
grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | while IFS=: read -r file _ name; do
	name=${name#func }
	echo "== $(dirname "$file") $name"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 200x "$(dirname "$file")"
done
