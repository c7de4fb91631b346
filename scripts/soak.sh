#!/bin/bash
# usage: soak.sh [TIME [PATTERN]]   runs the tests that have a long version (that range over testkit.Rounds), one after the other, with the race
# detector. They share TIME (10m) evenly; PATTERN selects tests by name. When its share is over, a test stops after the current round and
# prints how many rounds it did.
set -eu
cd "$(dirname "$0")/.."
time=${1:-10m} pattern=${2:-.}

seconds() {
	case $1 in
	*[!0-9smh]* | [!0-9]*) echo "soak.sh: $1: want a time such as 90s, 10m or 1h" >&2; exit 2 ;;
	*h) echo $((${1%h} * 3600)) ;;
	*m) echo $((${1%m} * 60)) ;;
	*) echo "${1%s}" ;;
	esac
}

# tests prints lines of "directory Test", for the function around each call of testkit.Rounds.
tests() {
	grep -rl --include='*_test.go' 'testkit\.Rounds(' . | while read -r file; do
		awk -v dir="$(dirname "$file")" '/^func /{name=$2; sub(/\(.*/, "", name)} /testkit\.Rounds\(/&&name~/^Test/{print dir, name}' "$file"
	done | sort -u | grep -E " .*$pattern" || true
}

node=$PWD/bin/tools/node # as in test.sh, if make test has installed it
if [ -d "$node/node_modules" ]; then
	export PATH=$PATH:$node/bin TETHER_XTERM=$node TETHER_TEST_NODE_MODULES=$node/node_modules
fi
total=$(seconds "$time")
list=$(tests)
[ -n "$list" ] || { echo "soak.sh: no test with a long version matches $pattern" >&2; exit 2; }
count=$(wc -l <<<"$list")
share=$((total / count > 1 ? total / count : 1))
echo "soak: $count tests, ${share}s each"
failed=0
while read -r dir name; do
	# A test may take longer than its share: it always does the rounds of make test, and it does not consist of rounds alone.
	out=$(TETHER_SOAK=${share}s go test -race -count=1 -v -timeout "$((share + 300))s" -run "^$name\$" "$dir" 2>&1 </dev/null) || failed=1
	if grep -q '^ok' <<<"$out"; then
		grep -oE 'soak: .*' <<<"$out" || echo "soak: $name was skipped"
	else
		echo "$out" | tail -n 60
	fi
done <<<"$list"
[ $failed = 0 ] && echo "soak: ok" || { echo "soak: FAILED"; exit 1; }
