#!/bin/sh
# Installs tether {{.Version}} for you alone, without root, or updates it:
#
#   curl -fsSL {{.Base}}/install.sh | sh
#
# It puts tether and tether-host into ~/.local/bin and changes nothing else. Variables: TETHER_BIN is another directory,
# TETHER_BASE_URL another address with the same files.
set -eu

version='{{.Version}}'
base=${TETHER_BASE_URL:-'{{.Base}}'}
signers='{{.Signers}}'

say() { printf '%s\n' "tether: $*"; }
fail() {
	printf '%s\n' "tether: not installed: $*" >&2
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# system prints the name of this system in the names of files.
system() {
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	MINGW* | MSYS* | CYGWIN*) fail "on Windows, run in PowerShell: irm $base/install.ps1 | iex" ;;
	*) fail "there is no build for $(uname -s); there are builds for Linux, macOS and Windows" ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	aarch64 | arm64) arch=arm64 ;;
	*) fail "there is no build for processors of the kind $(uname -m); there are builds for amd64 and arm64" ;;
	esac
	printf '%s\n' "${os}_$arch"
}

# fetch NAME downloads a file into the temporary directory.
fetch() {
	if have curl; then
		curl -fsSL --proto-redir =https -o "$work/$1" "$base/$1" || fail "cannot download $base/$1"
	elif have wget; then
		wget -q -O "$work/$1" "$base/$1" || fail "cannot download $base/$1"
	else
		fail "it takes curl or wget to download it"
	fi
}

sum() {
	if have sha256sum; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}

# signed checks the signature of the list of checksums.
signed() {
	if [ -z "$signers" ]; then
		say "the list of checksums is not signed: this script has no signing key"
		return
	fi
	have ssh-keygen || fail "it takes ssh-keygen (OpenSSH 8.1 or later) to check the signature"
	fetch SHA256SUMS.sig
	printf '%s\n' "$signers" >"$work/signers"
	ssh-keygen -q -Y verify -f "$work/signers" -I {{.Signer}} -n {{.Signer}} -s "$work/SHA256SUMS.sig" <"$work/SHA256SUMS" >/dev/null 2>&1 ||
		fail "the signature of $base/SHA256SUMS is wrong; nothing was changed"
	say "the signature of the list of checksums is right"
}

# clean removes what is not finished.
clean() { rm -rf "$work" "$bin/.tether.$$" "$bin/.tether-host.$$"; }

install() {
	[ -n "${TETHER_BIN:-${HOME:-}}" ] || fail "HOME is not set; name the directory in TETHER_BIN"
	bin=${TETHER_BIN:-$HOME/.local/bin}
	have sha256sum || have shasum || fail "it takes sha256sum or shasum to check the download"
	file=tether_${version}_$(system) || exit 1
	work=$(mktemp -d "${TMPDIR:-/tmp}/tether.XXXXXX") || fail "no temporary directory"
	trap clean EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	fetch SHA256SUMS
	signed
	want=$(sed -n "s/^\([0-9a-f]\{64\}\)  $file\.tar\.gz\$/\1/p" "$work/SHA256SUMS")
	[ -n "$want" ] || fail "$base/SHA256SUMS has no $file.tar.gz; the files there are of another version, or not of tether"
	fetch "$file.tar.gz"
	got=$(sum "$work/$file.tar.gz")
	[ "$got" = "$want" ] || fail "the checksum of $base/$file.tar.gz is $got, want $want; nothing was changed"
	gzip -dc "$work/$file.tar.gz" | tar -xf - -C "$work" || fail "cannot unpack $file.tar.gz"
	mkdir -p "$bin" 2>/dev/null && [ -w "$bin" ] || fail "cannot write to $bin; TETHER_BIN names another directory"
	before=
	[ ! -x "$bin/tether" ] || before=$("$bin/tether" version 2>/dev/null) || before="another version"
	for program in tether tether-host; do # beside the old ones, so that each takes its place in one step
		cp "$work/$file/$program" "$bin/.$program.$$" && chmod 755 "$bin/.$program.$$" || fail "cannot write to $bin"
	done
	"$bin/.tether.$$" version >/dev/null || fail "the program does not run here"
	for program in tether-host tether; do
		mv -f "$bin/.$program.$$" "$bin/$program" || fail "cannot write $bin/$program"
	done
	told
}

# told says what was done, and how to undo it.
told() {
	case $before in
	'') say "installed $version: $bin/tether and $bin/tether-host" ;;
	"tether $version") say "$version was installed already, and is in place again: $bin/tether and $bin/tether-host" ;;
	*) say "updated from ${before#tether } to $version: $bin/tether and $bin/tether-host"
		say "a running daemon stays as it is until: tether daemon --replace --background" ;;
	esac
	first=$(command -v tether || true)
	if [ -n "$first" ] && [ "$first" != "$bin/tether" ]; then
		say "your PATH finds another one first: $first"
	elif [ -z "$first" ]; then
		say "$bin is not in your PATH; add to your shell's start file: export PATH=\"$bin:\$PATH\""
	fi
	say "to undo it: tether service uninstall; tether stop; rm $bin/tether $bin/tether-host"
	say "next: tether demo"
}

install
