#!/bin/bash
# usage: release.sh [FLAGS]   builds packages, archives and installers into dist/release. It first installs the tools for that: nfpm for Linux
# packages, with go, below bin/tools; wixl, msitools and faketime for Windows, with apt as root. The flags are those of
# internal/tools/release: -targets linux/amd64 builds for one system and needs no tools of the others. Two runs for one commit give the
# same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
# Installed as a program, so that our module does not get its dependencies. Later versions need modules that not every module proxy has.
nfpm=github.com/goreleaser/nfpm/v2 nfpm_version=v2.45.2

fail() {
	echo "release.sh: $*" >&2
	exit 1
}

targets=linux,windows # those that need tools
if [[ " $* " =~ \ --?targets[=\ ]([^ ]+) ]]; then targets=${BASH_REMATCH[1]}; fi

scripts/web.sh --need || fail "the page of tether-host cannot be built: it takes npm and a network"

if [[ $targets == *linux* ]] && ! go version -m bin/tools/nfpm 2>/dev/null | grep -c "$nfpm[[:space:]]$nfpm_version" >/dev/null; then
	env -u GOOS -u GOARCH CGO_ENABLED=0 GOBIN="$PWD/bin/tools" go install -trimpath -ldflags='-s -w' "$nfpm/cmd/nfpm@$nfpm_version" ||
		fail "packages cannot be built: nfpm cannot be installed"
fi
if [[ $targets == *windows* ]] && { ! command -v wixl || ! command -v msibuild || ! command -v faketime; } >/dev/null; then
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
		fail "the installers for Windows cannot be built: install wixl, msitools and faketime (as root on a Debian system this does it), or leave Windows out: make release RELEASEFLAGS='-targets linux/amd64'"
	apt-get update -q >/dev/null &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends wixl msitools faketime >/dev/null ||
		fail "the installers for Windows cannot be built: apt-get cannot install wixl, msitools and faketime"
fi
exec go run ./internal/tools/release "$@"
