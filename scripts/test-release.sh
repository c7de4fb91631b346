#!/bin/bash
# usage: test-release.sh [same] [lists] [deb] [msi]   tests the files that make release has made; by default with all tests:
#
#   same  a second build, from a copy of the tree in another directory, gives the same bytes
#   lists all kinds of Linux packages have the same files
#   deb   in a clean, booted Debian 12: installation, use, an upgrade while a terminal runs, removal
#   msi   the same under Wine, as far as Wine can
#
# It fails if a test cannot be set up: a test that did not run must not look as if it had passed.
set -euo pipefail
cd "$(dirname "$0")/.."
new=$PWD/dist/release
old=$PWD/dist/old # an earlier version, to upgrade from
[ $# -gt 0 ] || set -- same lists deb msi

fail() {
	echo "test-release.sh: $*" >&2
	exit 1
}
step() { echo "== $*"; }

[ -f "$new/SHA256SUMS" ] || fail "there is nothing to test: run make release first"
(cd "$new" && sha256sum --quiet --strict -c SHA256SUMS) || fail "checksums are wrong"
signers=docs/release.signers
if [ -f "$new/SHA256SUMS.sig" ] && [ -f "$signers" ]; then
	ssh-keygen -Y verify -f "$signers" -I tether-release -n tether-release -s "$new/SHA256SUMS.sig" <"$new/SHA256SUMS" || fail "the signature is wrong"
else
	step "not signed, or there is no $signers: nothing to verify"
fi
unset RELEASE_KEY # the builds of these tests are not released
version=$(basename "$new"/tether_*.cdx.json .cdx.json)
version=${version#tether_}

# same builds a copy of the tree: all files that git does not ignore, and the history, from which the version comes.
same() {
	local copy
	copy=$(mktemp -d)
	git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -cf - -T - | tar -xf - -C "$copy"
	cp -a .git "$copy/"
	mkdir -p "$copy/bin"
	ln -s "$PWD/bin/tools" "$copy/bin/tools"
	(cd "$copy" && scripts/release.sh -o "$copy/out" >/dev/null) || fail "the second build failed in $copy"
	diff "$new/SHA256SUMS" "$copy/out/SHA256SUMS" || fail "a second build differs; it is in $copy/out"
	rm -rf "$copy"
	step "same: $(wc -l <"$new/SHA256SUMS") files are the same in a second build elsewhere"
}

# files_of prints the files of a package. Only the directory of zsh's completions differs.
files_of() {
	case $1 in
	*.deb) dpkg-deb --fsys-tarfile "$1" | tar -tf - ;;
	*.rpm) rpm -qpl --noplugins "$1" ;;
	*.apk) tar -tzf "$1" 2>/dev/null ;;
	*.zst) tar --zstd -tf "$1" ;;
	esac | sed 's|^\./||; s|^/||; s|zsh/site-functions|zsh/vendor-completions|' | grep -v '/$' | grep '^usr/' | sort
}

lists() {
	local arch extension
	if ! command -v rpm >/dev/null || ! command -v zstd >/dev/null; then
		[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q >/dev/null &&
			DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends rpm zstd >/dev/null ||
			fail "packages cannot be looked at: install rpm and zstd"
	fi
	for arch in amd64 arm64; do
		for extension in rpm apk pkg.tar.zst; do
			diff <(files_of "$new/tether_${version}_linux_$arch.deb") <(files_of "$new/tether_${version}_linux_$arch.$extension") ||
				fail "the files of the .deb and of the .$extension differ"
		done
		files_of "$new/tether_${version}_linux_$arch.deb" | grep -cx usr/bin/tether >/dev/null || fail "the .deb has no program"
	done
	step "lists: deb, rpm, apk and archlinux have the same $(files_of "$new/tether_${version}_linux_amd64.deb" | wc -l) files"
}

deb() (
	local arch
	arch=$(dpkg --print-architecture)
	scripts/release.sh -version 0.0.1 -targets "linux/$arch" -o "$old/deb" -work dist/work-old >/dev/null
	. scripts/container.sh
	container_open
	cp "$old/deb/tether_0.0.1_linux_$arch.deb" "$work/in/old.deb"
	cp "$new/tether_${version}_linux_$arch.deb" "$work/in/new.deb"
	cp scripts/test-release-inside.sh "$work/in/inside.sh"
	echo "$version" >"$work/in/version"
	boot 1
	grep '^deb: ' "$work/out/log"
)

# win PATH prints the path as Windows programs name it.
win() { echo "Z:${1//\//\\}"; }
wine() { scripts/wine.sh "$@" | tr -d '\r'; }
tether() { wine "$programs/tether.exe" "$@"; }

# within SECONDS COMMAND… waits until the command succeeds.
within() {
	local end=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -le "$end" ] || fail "msi: in time: $*"
		sleep 0.2
	done
}
last() { tether read --tail 1 clock | grep -o 'tick [0-9]*'; }
goes_on() {
	local before
	before=$(last)
	within 60 eval '[ "$(last)" != "'"$before"'" ]'
}
ends() { ! wine tasklist | grep -i '^tether'; }

# lines_in FILE fails unless the file has each line of the terminal once and in order.
lines_in() { grep -o 'tick [0-9]*' "$1" | awk '$2 != NR {print "line " NR ": " $0; exit 1}' || fail "msi: lines are lost or doubled in $1"; }

# Terminals of released programs show nothing under Wine (see platform/pty/console_wine_windows.go). So the old version is built with the tag wine,
# and the new version adopts its terminal. An upgrade under Wine differs from one on Windows in two ways. The removal of the old version does not
# know that it is part of an upgrade: msibuild deletes the actions with which a removal ends the service and the daemon. And Wine leaves a
# running program in its place until the next start, where Windows moves it aside: the test moves it.
msi() (
	local dir seen left action watcher status=0
	scripts/release.sh -version 0.0.1 -tags wine -targets windows/amd64 -o "$old/msi" -work dist/work-old >/dev/null
	for action in RemoveService StopDaemon; do
		msibuild "$old/msi/tether_0.0.1_windows_amd64.msi" -q "DELETE FROM \`InstallExecuteSequence\` WHERE \`Action\` = '$action'"
	done
	exec 9>bin/tools/wine.lock
	flock 9
	scripts/wine.sh setup
	dir=$(mktemp -d)
	trap 'scripts/wine.sh stop; rm -rf "$dir"' EXIT
	scripts/wine.sh start 9>&-
	TETHER_HOME=$(win "$dir/home")
	export TETHER_HOME
	programs=$(wine cmd /c 'echo %LOCALAPPDATA%\Programs\tether')
	programs=$PWD/bin/tools/wine/prefix/drive_c$(tr '\\' / <<<"${programs#C:}")
	for left in "$old/msi/tether_0.0.1_windows_amd64.msi" "$new/tether_${version}_windows_amd64.msi"; do # left by a killed run
		wine msiexec /x "$(win "$left")" /qn >/dev/null || true
	done
	rm -rf "$programs"

	step "msi: install"
	wine msiexec /i "$(win "$old/msi/tether_0.0.1_windows_amd64.msi")" /qn || fail "msiexec /i: exit status $?"
	[ "$(tether version)" = "tether 0.0.1" ] || fail "msi: installed is $(tether version)"
	[[ "$(wine reg query 'HKCU\Environment')" == *'\Programs\tether'* ]] || fail "msi: it is not in the PATH"
	[ -s "$programs/completions/tether.ps1" ] && [ -s "$programs/man/tether-run.1" ] && [ -s "$programs/LICENSES.txt" ] && [ -s "$programs/docs/RELIABILITY.md" ] || fail "msi: files are missing"

	step "msi: the main job: a host, a daemon that is paired with it, a terminal that is lent, an observer"
	scripts/wine.sh "$programs/tether-host.exe" --listen 127.0.0.1:0 --token-file "$(win "$dir/token")" >"$dir/host" 2>&1 9>&- &
	within 60 grep -q '^READY ' "$dir/host"
	tether pair --name demo --token-file "$(win "$dir/token")" "$(sed -n 's/^READY \([^[:space:]]*\).*/\1/p' "$dir/host")"
	[[ "$(tether run --private -- cmd /c 'echo hello')" == *hello* ]] || fail "msi: a command's output is missing"
	tether service install
	tether run --detach --name clock -- cmd /q /c 'for /l %i in (1,1,100000) do @(echo tick %i& ping -n 2 127.0.0.1 >nul)'
	scripts/wine.sh "$programs/tether.exe" watch --wait demo clock >"$dir/seen" 2>&1 9>&- &
	watcher=$!
	within 60 grep -q 'tick 2' "$dir/seen"

	step "msi: upgrade, while the terminal runs"
	mv "$programs"/*.exe "$dir/"
	wine msiexec /i "$(win "$new/tether_${version}_windows_amd64.msi")" /qn || fail "msiexec /i of the new version: exit status $?"
	[ "$(tether version)" = "tether $version" ] || fail "msi: installed is $(tether version)"
	[[ "$(tether status)" == *"version 0.0.1"* ]] || fail "msi: the daemon did not outlive the upgrade: $(tether status)"
	goes_on
	tether service restart
	[[ "$(tether status)" == *"version $version"* ]] || fail "msi: the daemon is not of the new version: $(tether status)"
	goes_on
	tether read clock >"$dir/all"
	lines_in "$dir/all"
	seen=$(grep -c tick "$dir/seen")
	within 60 eval '[ "$(grep -c tick "$dir/seen")" -gt '"$((seen + 1))"' ]'
	lines_in "$dir/seen"

	step "msi: remove, while the terminal runs: it ends, and nothing is left"
	kill "$watcher"
	wine taskkill /f /im tether-host.exe >/dev/null
	wine msiexec /x "$(win "$new/tether_${version}_windows_amd64.msi")" /qn || status=$?
	[ "$status" = 0 ] || fail "msiexec /x: exit status $status"
	[ ! -e "$programs" ] || fail "msi: left behind: $(find "$programs")"
	[[ "$(wine reg query 'HKCU\Environment')" != *tether* ]] || fail "msi: it is still in the PATH"
	! wine reg query 'HKCU\Software\Microsoft\Windows\CurrentVersion\Run' /v tether >/dev/null 2>&1 || fail "msi: it still starts at logon"
	within 60 ends
)

for part in "$@"; do
	case $part in
	same | lists | deb | msi) "$part" ;;
	*) fail "there is no part $part; take same, lists, deb or msi" ;;
	esac
done
