#!/bin/bash
# Tries a host of several nodes on this machine: three NATS servers, three nodes, a daemon that knows the addresses of two of them, and an observer
# at the third. While a terminal prints, it kills (-9) the node to which the daemon is connected. It succeeds if the observer got every line
# once.
set -eu
cd "$(dirname "$0")/.."
lines=20000
scripts/nats-server.sh
dir=$(mktemp -d)
go build -o "$dir/" ./cmd/tether ./cmd/tether-host
export PATH=$dir:$PATH TETHER_HOME=$dir/home NO_COLOR=1
[ "$(id -u)" != 0 ] || export TETHER_ALLOW_ROOT=1 TETHER_LEND_AS_ROOT=true
pids=()
end() {
	tether stop >/dev/null 2>&1 || true
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$dir"
}
trap end EXIT

fail() {
	echo "run-cluster: $*" >&2
	tail -n 5 "$dir"/*.log >&2 || true
	exit 1
}

# await COMMAND… waits until the command succeeds, for 60 s at most.
await() {
	local i
	for ((i = 0; i < 600; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	fail "waited in vain for: $*"
}

# port prints a free port.
port() {
	local p
	while p=$((20000 + RANDOM % 12000)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo "$p"; return; }
	done
}

clients=() routes="" urls="" ports=()
for n in 1 2 3; do
	clients+=("$(port)") ports+=("$(port)")
	routes+=${routes:+,}nats://127.0.0.1:${ports[n - 1]}
	urls+=${urls:+,}nats://127.0.0.1:${clients[n - 1]}
done
for n in 1 2 3; do
	bin/tools/nats-server -a 127.0.0.1 -p "${clients[n - 1]}" -n "n$n" -js -sd "$dir/nats$n" --cluster_name try \
		--cluster "nats://127.0.0.1:${ports[n - 1]}" --routes "$routes" >"$dir/nats$n.log" 2>&1 &
	pids+=($!)
done
echo "three NATS servers: $urls"

hosts=() addresses=()
for n in 1 2 3; do
	[ "$n" = 1 ] || { mkdir -m 700 "$dir/node$n"; cp -p "$dir/node1/host-key.pem" "$dir/node$n/"; }
	tether-host --listen 127.0.0.1:0 --tokens "$dir/node$n/tokens.json" --nats "$urls" --log-level info >"$dir/ready$n" 2>"$dir/host$n.log" &
	hosts+=($!) pids+=($!)
	await grep READY "$dir/ready$n"
	addresses+=("$(cut -d' ' -f2 "$dir/ready$n")")
done
echo "three hosts: ${addresses[*]}"

tether-host token create laptop --once --tokens "$dir/node3/tokens.json" >"$dir/laptop.token"
tether-host token create ann --role observer --tokens "$dir/node2/tokens.json" >"$dir/ann.token"
tether pair --token-file "$dir/laptop.token" "${addresses[@]:0:2}" >"$dir/pair.log" 2>&1 || fail "pairing"
# shellcheck disable=SC2016 # the variables are those of the shell that runs it
tether run --detach --name lines -- sh -c 'i=0; while [ $i -lt '"$lines"' ]; do i=$((i+1)); echo "line $i"; [ $((i % 250)) != 0 ] || sleep 0.05; done; sleep 1' >/dev/null
tether watch --first --token-file "$dir/ann.token" "${addresses[2]}" >"$dir/seen" 2>"$dir/watch.log" &
watcher=$!
pids+=("$watcher")
some() { [ "$(wc -l <"$dir/seen")" -ge $((lines / 4)) ]; }
await some
owner=""
for n in 1 2; do
	! grep -q "owned here" "$dir/host$n.log" || owner=$n
done
[ -n "$owner" ] || fail "neither node owns the machine's terminals"
kill -9 "${hosts[owner - 1]}"
wait "${hosts[owner - 1]}" 2>/dev/null || true
echo "killed node $owner, at which the daemon was, after $(wc -l <"$dir/seen") lines"
gone() { ! kill -0 "$watcher" 2>/dev/null; }
await gone
tr -d '\r' <"$dir/seen" | grep '^line ' >"$dir/got" || true
seq -f 'line %.0f' "$lines" >"$dir/want"
cmp "$dir/got" "$dir/want" || fail "of $lines lines, $(wc -l <"$dir/got") were seen at node 3"
echo "every one of $lines lines was seen once through node 3"
