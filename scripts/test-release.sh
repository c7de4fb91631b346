#!/bin/bash
# usage: test-release.sh [same] [lists] [script] [minute] [npm] [manifests] [deb] [msi]   tests the files that make release has made; by default with all tests:
#
#   same  a second build, from a copy of the tree in another directory, gives the same bytes
#   lists all kinds of Linux packages have the same files
#   script    install.sh with several shells and tools, from a server here: installation, update, and all that it has to refuse
#   minute    the first minute: install.sh, tether, the demo, an agent's settings, what the agent reads, and back; on a machine with busybox alone
#   npm       npx NAME, from a registry here
#   manifests the texts for PowerShell, Homebrew, pacman and Scoop have the right syntax, where the tool for that is installed
#   deb   in a clean, booted Debian 12: installation, use, an upgrade while a terminal runs, removal
#   msi   the same under Wine, as far as Wine can
#
# It fails if a test cannot be set up: a test that did not run must not look as if it had passed.
set -euo pipefail
cd "$(dirname "$0")/.."
new=$PWD/dist/release
old=$PWD/dist/old # an earlier version, to upgrade from
[ $# -gt 0 ] || set -- same lists script minute npm manifests deb msi

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
	# RELEASEFLAGS are those with which make release was called: several words.
	# shellcheck disable=SC2086
	(cd "$copy" && scripts/release.sh ${RELEASEFLAGS:-} -o "$copy/out" >/dev/null) || fail "the second build failed in $copy"
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

# serve starts a server of the results for the rest of a part, and a user's empty home. Nobody there is root.
serve() {
	dir=$(mktemp -d)
	node scripts/test-ways.js "$new" >"$dir/address" &
	server=$!
	trap 'kill "$server"; rm -rf "$dir"' EXIT
	within 60 grep -q http "$dir/address"
	url=$(cat "$dir/address")
	mkdir "$dir/tmp" "$dir/home"
	chmod 711 "$dir"
	chmod 1777 "$dir/tmp" "$dir/home"
}
# plainly HOME PATH COMMAND… runs it as an ordinary user, with nothing else in the environment.
plainly() {
	local home=$1 path=$2 as=()
	shift 2
	[ "$(id -u)" != 0 ] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	(cd "$dir/home" && "${as[@]}" env -i HOME="$home" PATH="$path" TMPDIR="$dir/tmp" TETHER_BASE_URL="${base:-$url}" "$@")
}
# only DIRECTORY PROGRAM… makes a directory for the PATH with these programs alone.
only() {
	local to=$1 program
	shift
	mkdir -p "$to"
	for program; do ln -s "$(command -v "$program")" "$to/$program"; done
}
# keyed KEY prints install.sh with that signing key, or with none.
keyed() { awk -v key="$1" "/^signers='/ {print \"signers='\" key \"'\"; within = 1} !within {print} /'\$/ {within = 0}" "$new/install.sh"; }
tidy() { [ -z "$(ls -A "$dir/tmp")" ] || fail "script: left behind: $(ls -A "$dir/tmp")"; }
# refuses WORDS HOME PATH SHELL SCRIPT fails unless the script says WORDS, changes nothing and leaves nothing.
refuses() {
	local words=$1 home=$2 out before
	shift
	before=$(find "$home" -type f -exec sha256sum {} + | sort)
	! out=$(plainly "$1" "$2" "$3" "$4" 2>&1) || fail "script: not refused: $words"
	[[ "$out" == *"$words"* ]] || fail "script: it says $out, not $words"
	[ "$(find "$home" -type f -exec sha256sum {} + | sort)" = "$before" ] || fail "script: changed although it refused: $words"
	tidy
}

script() (
	local common="uname mktemp rm mkdir cut sed tar gzip cp chmod mv cat" kind shell way out home path key size base=
	serve
	# shellcheck disable=SC2086 # several words
	{
		only "$dir/curl" $common sha256sum curl
		only "$dir/wget" $common sha256sum wget
		only "$dir/none" $common sha256sum
		only "$dir/key" $common sha256sum curl ssh-keygen
		only "$dir/odd" ${common#uname} sha256sum curl
	}
	keyed "" >"$dir/plain.sh" # what is signed is signed after these tests
	mkdir "$dir/busybox"
	busybox --install -s "$dir/busybox"
	for kind in "dash curl" "bash wget" "busybox busybox"; do
		read -r shell way <<<"$kind"
		home=$dir/home/$shell path=$dir/$way
		plainly "$home" "$PATH" mkdir "$home"
		shell=$(command -v "$shell")
		[ "$way" != busybox ] || shell="$shell sh"
		# shellcheck disable=SC2086 # several words
		out=$(plainly "$home" "$path" $shell <"$dir/plain.sh") || fail "script: $kind: exit status $?"
		for words in "installed $version: $home/.local/bin/tether" "to undo it, " "export PATH=$home/.local/bin:" "of checksums is" "next: $home/.local/bin/tether"; do
			[[ "$out" == *"$words"* ]] || fail "script: $kind: it does not say $words: $out"
		done
		[ "$(plainly "$home" "$PATH" "$home/.local/bin/tether" version)" = "tether $version" ] || fail "script: $kind: the program does not run"
		# shellcheck disable=SC2086 # several words
		out=$(plainly "$home" "$path" $shell <"$dir/plain.sh")
		[[ "$out" == *"was installed already"* && "$out" != *"next:"* ]] || fail "script: $kind: once more: $out"
		printf '#!/bin/sh\necho tether 0.0.1\n' >"$home/.local/bin/tether"
		# shellcheck disable=SC2086 # several words
		out=$(plainly "$home" "$home/.local/bin:$path" $shell <"$dir/plain.sh")
		[[ "$out" == *"updated from 0.0.1 to $version"* && "$out" != *"PATH"* ]] || fail "script: $kind: an update: $out"
		[ "$(cd "$home" && echo .[a-z]* .local/* .local/bin/* .local/share/* .local/share/doc/*/*)" = ".local .local/bin .local/share .local/bin/tether .local/bin/tether-host .local/share/doc $(cd "$home" && echo .local/share/doc/tether/{LICENSES.txt,README.md,docs})" ] || fail "script: $kind: there is more: $(find "$home")"
		tidy
	done
	out=$(plainly "$home" "$PATH" "$home/.local/bin/tether" update --from "$url")
	[[ "$out" == *"as the install script does"*"there is no newer version"* ]] || fail "script: tether update says $out"

	home=$dir/home/dash
	cp "$dir/plain.sh" "$dir/install.sh"
	for kind in wrong half; do
		base=$url/$kind refuses "$([ $kind = wrong ] && echo "the checksum of" || echo "cannot download")" "$home" "$dir/curl" /bin/dash "$dir/install.sh"
	done
	base=$url/half refuses "cannot download" "$home" "$dir/busybox" "$dir/busybox/sh" "$dir/install.sh" # wget itself tries for minutes
	base=$url/npm refuses "cannot download" "$home" "$dir/curl" /bin/dash "$dir/install.sh"
	refuses "curl or wget" "$home" "$dir/none" /bin/dash "$dir/install.sh"
	[[ "$(plainly "" "$dir/curl" /bin/dash "$dir/install.sh" 2>&1)" == *"HOME is not set"* ]] || fail "script: without HOME"
	out=$(plainly "" "$dir/curl" TETHER_BIN="$dir/home/some bin" /bin/dash "$dir/install.sh") &&
		[[ "$out"$'\n' == *"rm -rf '$dir/home/some bin/tether' '$dir/home/some bin/tether-host'"$'\n'* ]] ||
		fail "script: into a directory of another name: $out"
	for kind in "Plan9 amd64" "Linux riscv64" "MINGW64_NT-10.0 x86_64"; do
		printf '#!/bin/sh\n[ "$1" = -s ] && echo %s || echo %s\n' $kind >"$dir/odd/uname"
		chmod 755 "$dir/odd/uname"
		refuses "$([[ $kind == MINGW* ]] && echo PowerShell || echo "there is no build for")" "$home" "$dir/odd" /bin/dash "$dir/install.sh"
	done
	plainly "$dir/home" "$PATH" mkdir "$dir/home/cut"
	size=$(wc -c <"$dir/plain.sh")
	for cut in 100 1000 2000 3000 4000 $((size - 30)) $((size - 9)); do
		head -c "$cut" "$dir/plain.sh" >"$dir/install.sh"
		plainly "$dir/home/cut" "$dir/curl" /bin/dash "$dir/install.sh" >/dev/null 2>&1 || true
		[ -z "$(ls -A "$dir/home/cut")" ] || fail "script: the first $cut bytes of it installed something"
	done
	tidy

	# The same with a signing key: right, of another list, and without a tool to check it.
	ssh-keygen -q -t ed25519 -N '' -f "$dir/signer"
	key="tether-release namespaces=\"tether-release\" $(cut -d ' ' -f 1,2 "$dir/signer.pub")"
	keyed "$key" >"$dir/install.sh"
	mkdir "$dir/signed"
	ln "$new"/tether_*_linux_* "$dir/signed/" 2>/dev/null || cp "$new"/tether_*_linux_* "$dir/signed/"
	cp "$new/SHA256SUMS" "$dir/signed/"
	ssh-keygen -q -Y sign -f "$dir/signer" -n tether-release "$dir/signed/SHA256SUMS" 2>/dev/null
	kill "$server"
	node scripts/test-ways.js "$dir/signed" >"$dir/address2" &
	server=$!
	within 60 grep -q http "$dir/address2"
	url=$(cat "$dir/address2")
	out=$(plainly "$home" "$dir/key" /bin/dash "$dir/install.sh") || fail "script: a right signature is refused: $out"
	[[ "$out" == *"the signature of the list of checksums is right"* ]] || fail "script: signed: $out"
	refuses "it takes ssh-keygen" "$home" "$dir/curl" /bin/dash "$dir/install.sh"
	echo >>"$dir/signed/SHA256SUMS"
	refuses "is wrong" "$home" "$dir/key" /bin/dash "$dir/install.sh"
	step "script: with dash, bash and busybox, curl and wget: installed, again, updated; everything wrong is refused and leaves nothing"
)

# types LINE types it at the terminal of minute; sees WORDS waits until they are printed behind it, and says how long that took.
types() {
	from=$(wc -c <"$dir/screen") began=$(date +%s%N)
	printf '%s\r' "$1" >&8
}
shown() { tail -c "+$((from + 1))" "$dir/screen" | grep -c -- "$1" >/dev/null; }
sees() {
	(within 60 shown "$1") || fail "minute: not seen: $1: $(tail -c "+$((from + 1))" "$dir/screen")"
	took+=", $2 $((($(date +%s%N) - began) / 1000000)) ms"
}

# minute needs root for the machine: a directory with busybox, a user, no terminfo, no machine-id, no systemd, no XDG_RUNTIME_DIR. All
# processes are in a namespace, and end with its shell.
minute() (
	local root machine from began took='' library
	[ "$(id -u)" = 0 ] || fail "minute: it takes root"
	serve
	root=$dir/root
	mkdir -p "$root"/{bin,dev,etc,home/dev/.cursor,proc,tmp}
	cp "$(command -v busybox)" "$root/bin/busybox"
	for library in $(ldd "$root/bin/busybox" | grep -o '/[^ ]*'); do install -D "$library" "$root$library"; done
	chroot "$root" /bin/busybox --install -s /bin
	echo 'dev:x:1000:1000::/home/dev:/bin/sh' >"$root/etc/passwd"
	cat >"$root/bin/agent" <<-'AGENT'
		#!/bin/sh
		# An agent: starts the server that its settings name, lists the terminals, and reads the first.
		mkfifo /tmp/to /tmp/from
		eval "$(sed -n 's/.*"command": "\(.*\)".*/\1/p; s/[",]/ /g; s/.*args : \[\(.*\)\].*/\1/p' ~/.cursor/mcp.json | tr '\n' ' ')" </tmp/to >/tmp/from &
		exec 3>/tmp/to 4</tmp/from
		rm /tmp/to /tmp/from
		ask() {
			echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"$2\",\"params\":$3}" >&3
			while read -r answer <&4; do case $answer in *"\"id\":$1,"*) break ;; esac; done
		}
		ask 1 initialize '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}'
		ask 2 tools/call '{"name":"list_terminals","arguments":{}}'
		id=$(echo "$answer" | grep -o 'pty-[a-z0-9]*' | head -n 1)
		ask 3 tools/call '{"name":"read_terminal","arguments":{"terminalId":"'"$id"'"}}'
		echo "$answer"
	AGENT
	chmod 755 "$dir" "$root/bin/agent"
	chmod 1777 "$root/tmp"
	chown -R 1000:1000 "$root/home/dev"
	mkfifo "$dir/keys"
	: >"$dir/screen"
	machine="mount --rbind /dev '$root/dev' && mount -t proc proc '$root/proc' && cd '$root/home/dev' &&
		exec setsid -c chroot --userspec=1000:1000 --groups=1000 '$root' /bin/env -i HOME=/home/dev PATH=/bin SHELL=/bin/sh 'PS1=ready> ' TETHER_BASE_URL=$url sh -l"
	SHELL=/bin/bash command script -qfec "unshare --mount --pid --fork --kill-child bash -c \"$machine\"" "$dir/screen" <"$dir/keys" >/dev/null &
	exec 8>"$dir/keys"
	from=0 began=$(date +%s%N)
	sees 'ready> ' 'a shell'
	types "wget -qO- $url/install.sh | sh | tee /tmp/said"
	sees 'tries it on this machine' script
	types "grep '^  export' /tmp/said >/tmp/path; . /tmp/path; tether"
	sees 'press a key: ' tether
	types d
	sees 'q quit ' demo
	types c
	sees 'shows both lines' 'a changed page'
	types q
	sees 'press a key: ' 'the end of the demo'
	types a
	sees 'Write these changes' 'setup agents'
	types y
	sees 'Cursor: written' 'the settings'
	types q
	sees 'ready> ' 'quit'
	types 'tether run --detach -- sh -c "echo compiled in \$((2 + 3)) ms; sleep 1000"'
	sees '^pty-' run
	types agent
	sees 'compiled in 5 ms' 'the first read'
	types "sed -n '/to undo it/,/next:/s/^  //p' /tmp/said >/tmp/undo; . /tmp/undo; ps | grep -c '[t]ether'"
	sees '^0' 'undo'
	types exit
	wait "$!" || true
	[ -z "$(find "$root/home/dev" "$root/tmp" -type f -not -path '*/tmp/said' -not -path '*/tmp/path' -not -path '*/tmp/undo' -not -name .ash_history)" ] ||
		fail "minute: left behind: $(find "$root/home/dev" "$root/tmp" -type f)"
	step "minute: ${took#, }"
)

# npm_name is the name of the small package: the only one without a system at its end.
npm_name() { for archive in "$new"/*.tgz; do tar -xzOf "$archive" package/package.json; done | sed -n 's/^  "name": "\(.*\)",/\1/p' | grep -vE -- '-(linux|darwin|win32)-'; }

npm() (
	local name home status=0 base=
	serve
	name=$(npm_name)
	home=$dir/home/npm
	plainly "$home" "$PATH" mkdir "$home"
	npx() { plainly "$home" "$PATH" npm_config_update_notifier=false npm_config_registry="$url/npm/" npx --yes "$name" "$@"; }
	[ "$(npx version)" = "tether $version" ] || fail "npm: npx $name version says $(npx version 2>&1)"
	npx demo >"$dir/demo" 2>&1 || fail "npm: npx $name demo: $(tail -n 20 "$dir/demo")"
	npx kill >/dev/null 2>&1 || status=$?
	[ "$status" = 2 ] || fail "npm: the exit status of a wrong command is $status"
	[[ "$(npx update --from "$url")" == *"with npx"* ]] || fail "npm: tether update does not know npx"
	plainly "$home" "$PATH" npm_config_registry="$url/npm/" npm install --silent --no-audit --no-fund --prefix "$home/own" --global "$name"
	[[ "$(plainly "$home" "$PATH" "$home/own/bin/tether" update --from "$url")" == *"with npm:"* ]] || fail "npm: tether update does not know npm"
	[ "$(plainly "$home" "$PATH" "$home/own/bin/tether-host" --version)" = "tether-host version $version" ] || fail "npm: tether-host does not run"
	step "npm: npx $name demo works, and npm install --global"
)

manifests() (
	local node=$PWD/bin/tools/node/node_modules
	bash -n "$new/PKGBUILD" || fail "manifests: PKGBUILD"
	node -e 'JSON.parse(require("fs").readFileSync(process.argv[1]))' "$new/tether.json" || fail "manifests: tether.json"
	if command -v ruby >/dev/null; then ruby -c "$new/tether.rb" >/dev/null || fail "manifests: tether.rb"; else step "manifests: no ruby: tether.rb was not looked at"; fi
	if [ -d "$node/tree-sitter-powershell" ]; then
		node --input-type=module -e '
			const { Parser, Language } = await import(process.argv[1] + "/web-tree-sitter/web-tree-sitter.js");
			await Parser.init();
			const parser = new Parser();
			parser.setLanguage(await Language.load(process.argv[1] + "/tree-sitter-powershell/tree-sitter-powershell.wasm"));
			const text = (await import("node:fs")).readFileSync(process.argv[2], "utf8");
			process.exit(parser.parse(text).rootNode.hasError ? 1 : 0);
		' "$node" "$new/install.ps1" || fail "manifests: install.ps1"
	else
		step "manifests: no grammar of PowerShell: install.ps1 was not looked at"
	fi
	step "manifests: their syntax is right; nothing of them was tried"
)

deb() (
	local arch
	arch=$(dpkg --print-architecture)
	scripts/release.sh -version 0.0.1 -targets "linux/$arch" -only .deb -o "$old/deb" -work dist/work-old >/dev/null
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
		[ "$(date +%s)" -le "$end" ] || fail "in time: $*"
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
	scripts/release.sh -version 0.0.1 -tags wine -targets windows/amd64 -only .msi -o "$old/msi" -work dist/work-old >/dev/null
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
	same | lists | script | minute | npm | manifests | deb | msi) "$part" ;;
	*) fail "there is no part $part; take same, lists, script, minute, npm, manifests, deb or msi" ;;
	esac
done
