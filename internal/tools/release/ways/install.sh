#!/bin/sh
# Installs tether {{.Version}} for you alone, without root, or updates it:
#
#   curl -fsSL {{.Base}}/install.sh | sh
#
# It puts tether and tether-host into ~/.local/bin, their pages into ~/.local/share/doc/tether, and changes nothing else. Variables:
# TETHER_BIN is another directory, TETHER_BASE_URL another address with the same files.
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
# quoted WORD prints it as a word for the shell.
quoted() {
	case $1 in
	*[!A-Za-z0-9/._+@:-]*) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")" ;;
	*) printf '%s' "$1" ;;
	esac
}

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
	say "downloading $base/$file.tar.gz"
	fetch "$file.tar.gz"
	got=$(sum "$work/$file.tar.gz")
	[ "$got" = "$want" ] || fail "the checksum of $base/$file.tar.gz is $got, want $want; nothing was changed"
	gzip -dc "$work/$file.tar.gz" | tar -xf - -C "$work" || fail "cannot unpack $file.tar.gz"
	mkdir -p "$bin" 2>/dev/null && [ -w "$bin" ] || fail "cannot write to $bin; TETHER_BIN names another directory"
	doc= # where doctor looks for pages
	case $bin in
	?*/bin)
		doc=${bin%/bin}/share/doc/tether
		rm -rf "$doc" && mkdir -p "$doc" && cp -R "$work/$file/docs" "$work/$file/README.md" "$work/$file/LICENSES.txt" "$doc" || fail "cannot write to $doc"
		;;
	esac
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
	[ -z "$doc" ] || say "their pages are in $doc"
	tether=tether
	first=$(command -v tether || true)
	if [ "$first" != "$bin/tether" ]; then
		tether=$(quoted "$bin/tether")
		[ -z "$first" ] || say "your PATH finds another one first: $first"
		[ -n "$first" ] || lacks_path
	fi
	say "to undo it, with all that tether has written since:"
	printf '  %s\n' "$tether setup agents --undo --yes; $tether service uninstall; $tether stop" "rm -rf$(written)"
	[ -n "$before" ] || say "next: $tether shows what you can do; $tether demo tries it on this machine"
}

# lacks_path says how the directory gets into the PATH.
lacks_path() {
	line="export PATH=$(quoted "$bin"):\"\$PATH\"" start=.profile
	case ${SHELL:-} in
	*/fish)
		say "$bin is not in your PATH; this adds it, for later shells, too:"
		printf '  %s\n' "fish_add_path $(quoted "$bin")"
		return
		;;
	*/zsh) start=.zshrc ;;
	*/bash) case $file in *_darwin_*) start=.bash_profile ;; *) start=.bashrc ;; esac ;;
	esac
	say "$bin is not in your PATH; this adds it now, and for later shells as a line of ~/$start:"
	printf '  %s\n' "$line"
}

# written prints what is on this machine of tether, each behind a space.
written() {
	set -- "$bin/tether" "$bin/tether-host" ${doc:+"$doc"}
	case ${HOME:+$file} in
	'') ;; # the program writes nothing then
	*_darwin_*) set -- "$@" "$HOME/Library/Application Support/tether" "$HOME/Library/Caches/tether" ;;
	*) set -- "$@" "${XDG_CONFIG_HOME:-$HOME/.config}/tether" "${XDG_STATE_HOME:-$HOME/.local/state}/tether" \
		"${XDG_CACHE_HOME:-$HOME/.cache}/tether" ${XDG_RUNTIME_DIR:+"$XDG_RUNTIME_DIR/tether"} ;;
	esac
	for path; do printf ' %s' "$(quoted "$path")"; done
}

install
