#!/bin/sh
# Shows the whole path on this machine: a host, a daemon that is paired with it, and a terminal that is lent to it. With a terminal of
# your own you get a lent shell; without one, a dev server is started, visited, watched and killed, with a kill -9 of the daemon in between,
# and the exit status is 0 only if an observer at the host saw all of it, each line once. Everything lives in a directory of its own and
# is gone afterwards.
set -eu
cd "$(dirname "$0")/.."
bin=${TETHER_BIN:-$PWD/bin}
[ -x "$bin/tether" ] && [ -x "$bin/tether-host" ] || make -s build

umask 077
dir=$(mktemp -d /tmp/tether-run.XXXXXX) # short: the path of a socket is limited
export TETHER_HOME="$dir/home" TETHER_ALLOW_ROOT=1 TETHER_LEND_AS_ROOT=true
unset NO_COLOR || true
PATH="$bin:$PATH"
host='' watcher=''

cleanup() {
	status=$?
	trap - EXIT HUP INT TERM
	[ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
	tether stop 2>/dev/null || true # with all its terminals
	if [ -n "$host" ]; then
		kill "$host" 2>/dev/null || true
		wait "$host" 2>/dev/null || true
	fi
	[ "$status" = 0 ] || [ ! -t 1 ] || echo "make run: something went wrong (exit status $status)" >&2
	rm -rf "$dir"
	exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '\n== %s\n' "$*"; }

# until_seen PATTERN FILE WHAT: waits at most 10 s for a line.
until_seen() {
	tries=0
	until grep -q "$1" "$2"; do
		tries=$((tries + 1))
		if [ $tries -gt 200 ]; then
			echo "make run: did not see $3; this is what was seen:" >&2
			cat "$2" "$dir/host.log" >&2
			exit 1
		fi
		sleep 0.05
	done
}

say "an agent host on this machine"
: >"$dir/host.out"
tether-host --listen 127.0.0.1:0 --token-file "$dir/token" >"$dir/host.out" 2>"$dir/host.log" &
host=$!
until_seen '^READY ' "$dir/host.out" "the host"
url=$(sed -n 's/^READY //p' "$dir/host.out")
echo "$url"

say "a daemon, paired with it"
tether pair --name demo-host --token-file "$dir/token" "$url"

if [ -t 0 ] && [ -t 1 ]; then
	say "a shell of yours that the host sees; exit ends it all"
	echo "In another terminal, see what an observer there sees:"
	echo
	echo "  TETHER_HOME=$TETHER_HOME $bin/tether watch --wait demo-host shell"
	echo
	echo "or in a browser:"
	echo
	echo "  $(tether-host link --url "$url" --token-file "$dir/token")"
	echo
	status=0
	tether run --name shell -- "${SHELL:-/bin/sh}" || status=$?
	echo "the shell ended with $status; what was started is being cleaned up"
	exit 0
fi

say "a dev server in a terminal that is lent to the host"
go build -o "$dir/demo" ./internal/demo
tether run --detach --name dev-server -- "$dir/demo" serve
: >"$dir/seen"
tether watch --wait demo-host dev-server >"$dir/seen" 2>&1 &
watcher=$!
until_seen 'listening on http' "$dir/seen" "the server's first line at the observer"
page=$(sed -n 's/.*listening on \(http[^[:space:]]*\).*/\1/p' "$dir/seen" | tr -d '\r')
tether ls

say "a page is requested"
"$dir/demo" get "$page/hello"
until_seen 'GET "/hello" .*200' "$dir/seen" "the line of the access log at the observer"

say "the daemon is killed with kill -9; the server serves on, and nobody tells the observer"
pid=$(tether status --json | sed -n 's/^  "pid": \([0-9]*\),$/\1/p')
kill -KILL "$pid"
"$dir/demo" get "$page/without-a-daemon"
tether status || true

say "another daemon takes the server up where it is"
tether daemon --background
until_seen 'GET "/without-a-daemon" .*200' "$dir/seen" "the line that was written without a daemon"
"$dir/demo" get "$page/with-another"
until_seen 'GET "/with-another" .*200' "$dir/seen" "the line that was written after that"
tether ls

say "the server is killed"
tether kill dev-server
until_seen '^tether: exited [0-9]' "$dir/seen" "the exit at the observer"
wait "$watcher" || { echo "make run: the observer failed" >&2; exit 1; }
watcher=''

for path in hello without-a-daemon with-another; do
	[ "$(grep -c "GET \"/$path\"" "$dir/seen")" = 1 ] || { cat "$dir/seen"; echo "make run: /$path was not seen once" >&2; exit 1; }
done

say "all of that was seen by an observer at the host, each line once:"
sed 's/^/  | /' "$dir/seen"

say "people see it in a browser, at a link such as this (run make run in a terminal to try it: there the host waits for you)"
link=$(tether-host link --url "$url" --token-file "$dir/token")
"$dir/demo" get "$link" >/dev/null
echo "$link"
