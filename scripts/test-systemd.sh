#!/bin/bash
# Tests the service under a real systemd: a Debian root below bin/tools/systemd (made once: 15 s, 300 MB) is booted in a container,
# twice, and scripts/test-systemd-inside.sh runs in it. It fails when that cannot be set up: tests that did not run must not look as
# if they had passed.
#
# It takes root on a Debian system. The container has no network of its own; nothing outside bin/tools/systemd is written.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$PWD/bin/tools/systemd

fail() {
	echo "test-systemd.sh: $*" >&2
	exit 1
}

# setup makes the root in which the tests begin. It is kept; each run works on a copy in layers.
setup() {
	[ "$(id -u)" = 0 ] || fail "a container cannot be booted: this takes root; run make test-systemd as root"
	command -v apt-get >/dev/null || fail "a container cannot be set up: this takes a Debian system (apt-get is missing)"
	if ! command -v mmdebstrap >/dev/null || ! command -v systemd-nspawn >/dev/null; then
		apt-get update -q >/dev/null &&
			DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends mmdebstrap systemd-container >/dev/null ||
			fail "a container cannot be set up: apt-get cannot install mmdebstrap and systemd-container"
	fi
	[ ! -e "$dir/ok" ] || return 0
	local mirror key=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | head -1)
	[ -n "$mirror" ] || fail "a container cannot be set up: apt knows no Debian mirror"
	rm -rf --one-file-system "$dir"
	mkdir -p "$dir"
	mmdebstrap --quiet --variant=essential --include=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,procps \
		bookworm "$dir/root" "deb [signed-by=$key] $mirror bookworm main" ||
		fail "a container cannot be set up: $mirror did not give a Debian 12 with systemd"
	cat >"$dir/root/etc/systemd/system/inside.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c '/bin/bash /in/inside.sh >>/out/log 2>&1; echo $? >/out/status; systemctl --no-block poweroff'
TimeoutStartSec=180
UNIT
	mkdir -p "$dir/root/etc/systemd/system/graphical.target.wants"
	ln -s ../inside.service "$dir/root/etc/systemd/system/graphical.target.wants/"
	touch "$dir/ok"
}

# boot runs the container until it turns itself off.
boot() {
	rm -f "$work/out/status"
	echo "$1" >"$work/in/boot"
	timeout 200 systemd-nspawn --quiet --register=no --keep-unit --private-network -D "$work/root" \
		--bind-ro="$work/in:/in" --bind="$work/out:/out" --boot </dev/null >"$work/out/console.$1" 2>&1 9>&- || true
	if [ "$(cat "$work/out/status" 2>/dev/null)" != 0 ]; then
		cat "$work/out/log" 2>/dev/null || tail -30 "$work/out/console.$1"
		fail "boot $1 failed; all it said is in $work/out"
	fi
}

mkdir -p bin/tools
exec 9>bin/tools/systemd.lock
flock --wait 300 9 || fail "another run has not ended for 5 minutes"
setup
work=$dir/run
for left in "$work/root" "$work/upper"; do # by a run that was killed
	if mountpoint -q "$left"; then umount "$left"; fi
done
rm -rf --one-file-system "$work"
mkdir -p "$work"/{in,out,root,upper,layer}
# A copy in layers: both boots write to the same one, and the next run begins anew.
mount -t tmpfs tether-systemd "$work/upper"
mkdir "$work/upper/up" "$work/upper/work"
mount -t overlay tether-systemd -o "lowerdir=$dir/root,upperdir=$work/upper/up,workdir=$work/upper/work" "$work/root"
trap 'umount "$work/root" "$work/upper"' EXIT
CGO_ENABLED=0 go build -trimpath -o "$work/in/tether" ./cmd/tether
cp scripts/test-systemd-inside.sh "$work/in/inside.sh"
boot 1
boot 2
cat "$work/out/log"
