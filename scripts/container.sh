# Functions for test scripts that boot a Debian 12 in a container without a network. Scripts source it in the project's directory. The root of the
# container is below bin/tools/systemd (made once: 15 s, 300 MB). A script calls container_open, puts its files and a script inside.sh into
# $work/in, and calls boot, which runs inside.sh as root. The output of inside.sh is in $work/out/log.
#
# This needs root on a Debian system, and fails without: tests that did not run must not look as if they had passed. It writes nothing outside
# bin/tools, except for packages that it installs.
container=$PWD/bin/tools/systemd
work=$container/run

fail() {
	echo "${0##*/}: $*" >&2
	exit 1
}

# container_setup installs the root directory of the container, once. Each run changes only a layer above it.
container_setup() {
	[ "$(id -u)" = 0 ] || fail "a container cannot be booted: this takes root; run it as root"
	command -v apt-get >/dev/null || fail "a container cannot be set up: this takes a Debian system (apt-get is missing)"
	if ! command -v mmdebstrap >/dev/null || ! command -v systemd-nspawn >/dev/null; then
		apt-get update -q >/dev/null &&
			DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends mmdebstrap systemd-container >/dev/null ||
			fail "a container cannot be set up: apt-get cannot install mmdebstrap and systemd-container"
	fi
	[ ! -e "$container/ok" ] || return 0
	local mirror key=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | head -1)
	[ -n "$mirror" ] || fail "a container cannot be set up: apt knows no Debian mirror"
	rm -rf --one-file-system "$container"
	mkdir -p "$container"
	mmdebstrap --quiet --variant=essential --include=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,procps \
		bookworm "$container/root" "deb [signed-by=$key] $mirror bookworm main" ||
		fail "a container cannot be set up: $mirror did not give a Debian 12 with systemd"
	cat >"$container/root/etc/systemd/system/inside.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c '/bin/bash /in/inside.sh >>/out/log 2>&1; echo $? >/out/status; systemctl --no-block poweroff'
TimeoutStartSec=180
UNIT
	mkdir -p "$container/root/etc/systemd/system/graphical.target.wants"
	ln -s ../inside.service "$container/root/etc/systemd/system/graphical.target.wants/"
	touch "$container/ok"
}

# container_open mounts a writable layer above the root directory, which all boots of this run share. It is gone when the script ends.
container_open() {
	mkdir -p bin/tools
	exec 9>bin/tools/systemd.lock
	flock --wait 300 9 || fail "another run has not ended for 5 minutes"
	container_setup
	local left
	for left in "$work/root" "$work/upper"; do # left by a killed run
		if mountpoint -q "$left"; then umount "$left"; fi
	done
	rm -rf --one-file-system "$work"
	mkdir -p "$work"/{in,out,root,upper,layer}
	mount -t tmpfs tether-systemd "$work/upper"
	mkdir "$work/upper/up" "$work/upper/work"
	mount -t overlay tether-systemd -o "lowerdir=$container/root,upperdir=$work/upper/up,workdir=$work/upper/work" "$work/root"
	trap 'umount "$work/root" "$work/upper"' EXIT
}

# boot N runs the container until it turns itself off; inside, /in/boot contains N. It has cgroups of version 2, with the controllers that the
# machine has mounted so.
boot() {
	rm -f "$work/out/status"
	echo "$1" >"$work/in/boot"
	SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout 200 systemd-nspawn --quiet --register=no --keep-unit --private-network -D "$work/root" \
		--bind-ro="$work/in:/in" --bind="$work/out:/out" --boot </dev/null >"$work/out/console.$1" 2>&1 9>&- || true
	if [ "$(cat "$work/out/status" 2>/dev/null)" != 0 ]; then
		cat "$work/out/log" 2>/dev/null || tail -30 "$work/out/console.$1"
		fail "boot $1 failed; all it said is in $work/out"
	fi
}
