#!/bin/bash
# Runs Wine 10 in a root directory of its own below bin/tools/wine, for `make test-windows`. This Wine comes from Debian 13, because Wine 8 of
# Debian 12 cannot run programs built with Go 1.26 (no bcryptprimitives.dll; os.RemoveAll fails).
#
#   wine.sh setup           installs Wine, once: downloads about 200 MB, takes 2 GB on disk and half a minute
#   wine.sh start | stop    keeps idle programs alive during a test run, see keep below
#   wine.sh PROG.exe ARGS…  runs a Windows program; also as go test -exec. Directories have their own names, on drive Z:
#
# WINEPREFIX names another directory for the data of Windows (registry, drive C:) than bin/tools/wine/prefix.
#
# The script needs root. It enters Wine's root directory with unshare(1) and mounts directories into it in a private mount namespace, so that
# removing the root directory later cannot reach them.
set -euo pipefail
dir=$(realpath -m "$(dirname "$(realpath "$0")")/../bin/tools/wine")
root=$dir/root

fail() {
	echo "wine.sh: $*" >&2
	exit 1
}

setup() {
	[ ! -e "$dir/ok" ] || return 0
	[ "$(id -u)" = 0 ] || fail "Wine cannot be set up: this takes root; run make test-windows as root once"
	command -v apt-get >/dev/null || fail "Wine cannot be set up: this takes a Debian system (apt-get is missing)"
	if ! command -v mmdebstrap >/dev/null; then
		apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends mmdebstrap >/dev/null ||
			fail "Wine cannot be set up: apt-get cannot install mmdebstrap"
	fi
	local mirror key=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' | head -1)
	[ -n "$mirror" ] || fail "Wine cannot be set up: apt knows no Debian mirror"
	fetch "$mirror" "$key" || fetch "$mirror" "$key" || fail "Wine cannot be set up: $mirror did not give a Debian 13 with Wine"
	echo "127.0.0.1 localhost" >"$root/etc/hosts"
	(run wineboot -i) >"$dir/wineboot.log" 2>&1 || fail "Wine cannot be set up: wineboot, see $dir/wineboot.log"
	touch "$dir/ok"
}

# fetch MIRROR KEY installs the root directory anew.
fetch() {
	rm -rf --one-file-system "$dir"
	mkdir -p "$dir"
	mmdebstrap --quiet --variant=essential --include=wine64,wine trixie "$root" "deb [signed-by=$2] $1 trixie main"
}

# top PATH… prints the top directories of the paths, each once.
top() {
	local p
	for p in "$@"; do realpath -m "$p"; done | cut -d/ -f1,2 | sort -u
}

run() {
	export WINEPREFIX=${WINEPREFIX:-$dir/prefix} WINEDEBUG=${WINEDEBUG:--all} WINEDLLOVERRIDES='mscoree,mshtml='
	export WINELOADER=/usr/lib/wine/wine64 WINESERVER=/usr/lib/wine/wineserver64 XDG_RUNTIME_DIR=$dir
	unset DISPLAY
	local binds
	binds=$(top "$PWD" "$dir" "$WINEPREFIX" "${TMPDIR:-/tmp}" "${GOCACHE:-${HOME:-/root}}")
	# shellcheck disable=SC2016 # expanded by the inner shell
	exec unshare -m --propagation private bash -c '
set -e
root=$0 binds=$1
shift
for d in /proc /sys /dev $binds; do
	mkdir -p "$root$d"
	mount --rbind "$d" "$root$d"
done
if [ "$1" = wineserver ]; then
	shift
	exec unshare --root="$root" --wd=/ "$WINESERVER" "$@"
fi
exec unshare --root="$root" --wd="$PWD" "$WINELOADER" "$@"' "$root" "$binds" "$@"
}

# keep starts an idle program and the desktop, and with them Wine's background processes. Otherwise the first program, and the first that uses the
# desktop, would start these. They would inherit its output, so that a reader of the output waits for ever, and each later program would
# start and stop them again, which takes 2.5 s instead of 0.05 s.
keep() {
	setsid "$0" ping -n 1000000 127.0.0.1 </dev/null >/dev/null 2>&1 &
	setsid "$0" explorer /desktop </dev/null >/dev/null 2>&1 &
	local end=$((SECONDS + 120))
	while [ $SECONDS -lt $end ]; do
		timeout 30 "$0" cmd /c exit 0 </dev/null >/dev/null 2>&1 && return
		sleep 0.5
	done
	fail "Wine does not run a program; remove $dir and try again"
}

case ${1:-} in
setup) setup ;;
start) keep ;;
stop) (run wineserver -k) || true ;;
"") fail "usage: wine.sh setup | start | stop | PROG.exe ARGS…" ;;
*) run "$@" ;;
esac
