#!/bin/bash
# Installs the programs that tests use, where it can: with apt if it runs as root, and with npm and go below bin/tools. It prints what is missing
# afterwards; tests that need it are skipped and say so. With the argument vscode-host it installs VS Code's agent host alone, with frameworks the dev
# servers that only a long run tries (TETHER_FRAMEWORKS=all make test-web).
set -eu
cd "$(dirname "$0")/.."
mkdir -p bin/tools
if command -v flock >/dev/null; then # two targets of make may come here at the same time
	exec 8>bin/tools/install.lock
	flock 8
fi

# vscode_host installs the agent host of VS Code.
vscode_host() {
	local host=bin/tools/vscode-host
	[ ! -d "$host/vs/out" ] || return 0
	rm -rf "$host"
	if ! command -v npm >/dev/null || ! timeout 600 bash scripts/vscode-host.sh install "$host" >/dev/null 2>&1; then
		rm -rf "$host"
		echo "not installed, so its tests are skipped: VS Code's agent host (it takes npm and a network)"
	fi
}
[ "${1:-}" != vscode-host ] || { vscode_host; exit; }

missing() { for tool; do command -v "$tool" >/dev/null || printf '%s ' "$tool"; done; }

# debian "PROGRAM..." "PACKAGE..." CONSEQUENCE installs the packages if one of the programs is missing.
updated=
debian() {
	local log
	# shellcheck disable=SC2086 # several words
	[ -n "$(missing $1)" ] || return 0
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		log=$(mktemp)
		[ -n "$updated" ] || timeout 300 apt-get update -q >"$log" 2>&1 || tail -n 5 "$log"
		updated=yes
		# shellcheck disable=SC2086 # several words
		DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -q --no-install-recommends $2 >"$log" 2>&1 || tail -n 5 "$log"
		rm -f "$log"
	fi
	# shellcheck disable=SC2086 # several words
	[ -z "$(missing $1)" ] || echo "not installed, so $3: $(missing $1)"
}

debian_packages() {
	debian "bash zsh fish ksh mksh busybox" "bash zsh fish ksh mksh busybox" "their tests are skipped"
	debian lsof lsof "its test is skipped" # macOS finds the processes of sockets with it
	# Tests run tether with these as people do.
	debian "make script tmux screen ssh sshd cron unshare" "make bsdutils tmux screen openssh-client openssh-server cron util-linux" "their tests are skipped"
	debian nginx nginx-light "the tests behind a proxy are skipped"
	# Programs that ask, build, serve or watch: tether must notice which of them wait for input.
	debian "sudo fzf dialog nano fdisk lua5.4 ed bc zip gpg vim less gdb sqlite3 entr inotifywait python3 perl wget curl" \
		"sudo fzf dialog nano fdisk lua5.4 ed bc zip gpg vim less gdb sqlite3 entr inotify-tools python3 perl wget curl" \
		"they are skipped where programs that ask are tried"
	# Terminal programs, in windows on a screen that is a file.
	debian "Xvfb setxkbmap xdotool xclip xterm kitty sakura" "xvfb x11-xkb-utils xdotool xclip xterm kitty sakura fonts-dejavu-core" \
		"the tests in windows of terminal programs are skipped"
	# A real keyring, on a session bus of its own, keeps a secret.
	debian "gnome-keyring-daemon dbus-run-session dbus-send" "gnome-keyring dbus dbus-daemon" "the test of GNOME's keyring is skipped"
	debian flask python3-flask "its page is not tried"
	# A real browser uses the local door as pages do.
	{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null ||
		debian chromium-headless-shell chromium-headless-shell "the tests with a browser are skipped"
}

# installed MODULES NAME@VERSION... tells whether the directory has the packages in these versions. Other words are skipped.
installed() {
	local modules=$1 word
	shift
	for word; do
		case $word in
		--*) ;;
		*) grep -qs "\"version\": *\"${word##*@}\"" "$modules/${word%@*}/package.json" || return 1 ;;
		esac
	done
}

# npm_packages DIRECTORY FILE CONSEQUENCE ARGUMENT... installs packages in a directory below bin/tools, unless node_modules/FILE and
# their versions are there.
npm_packages() {
	local dir=bin/tools/$1 file=$2 consequence=$3
	shift 3
	[ ! -e "$dir/node_modules/$file" ] || ! installed "$dir/node_modules" "$@" || return 0
	rm -rf "$dir"
	if ! command -v npm >/dev/null || ! timeout 600 npm install --prefix "$dir" --no-save --silent --no-audit --no-fund "$@" >/dev/null 2>&1; then
		rm -rf "$dir"
		echo "not installed, so $consequence (npm and a network are needed)"
	fi
}

# frameworks installs dev servers for a long run, some 800 MB.
frameworks() {
	debian "django-admin rails" "python3-django ruby-rails" "their pages are not tried"
	npm_packages astro astro "Astro is not tried" --ignore-scripts astro@7.3.5
	npm_packages sveltekit @sveltejs/kit "SvelteKit is not tried" --ignore-scripts vite@8.4.0 @sveltejs/kit@3.2.0 @sveltejs/vite-plugin-svelte@7.3.1 svelte@5.57.3
	npm_packages nuxt nuxt "Nuxt is not tried" --ignore-scripts nuxt@4.5.2
	npm_packages storybook storybook "Storybook is not tried" --ignore-scripts vite@8.4.0 storybook@10.6.7 @storybook/html-vite@10.6.0
	npm_packages angular @angular/cli "Angular is not tried" --ignore-scripts @angular/cli@22.2.7 @angular/build@22.2.7 @angular/core@22.2.6 \
		@angular/common@22.2.6 @angular/compiler@22.2.6 @angular/compiler-cli@22.2.6 @angular/platform-browser@22.2.6 typescript@6.0.3 rxjs@7.8.2 tslib@2.9.1
}

# oracles installs xterm.js, which checks the scanner, a grammar that checks the script for PowerShell, the shell nu, and jsQR, which reads QR codes.
oracles() {
	local node=bin/tools/node nu
	npm_packages node jsqr "the tests with xterm.js, PowerShell's grammar, nushell and jsQR are skipped" --ignore-scripts \
		@xterm/headless@6.0.0 web-tree-sitter@0.27.1 tree-sitter-powershell@0.26.4 nushell@0.115.1 jsqr@1.4.0
	for nu in "$PWD/$node"/node_modules/@nushell/*/bin/nu; do
		[ ! -x "$nu" ] || { mkdir -p "$node/bin" && ln -sf "$nu" "$node/bin/nu"; }
	done
}

# identity_provider installs an identity provider for tests of logins at the host.
identity_provider() {
	local provider=bin/tools/oidc-provider made
	[ ! -x "$provider" ] || return 0
	made=$(mktemp -d)
	if GOBIN=$made timeout 600 go install github.com/zitadel/oidc/v3/example/server@v3.51.17 >/dev/null 2>&1; then
		mv "$made/server" "$provider"
	else
		echo "not installed, so its test is skipped: an identity provider (it takes Go modules and a network)"
	fi
	rm -rf "$made"
}

[ "${1:-}" != frameworks ] || { frameworks; exit; }

# All installations run at the same time, because they wait for the network and the disk more than for processors.
debian_packages 8>&- &
vscode_host 8>&- &
oracles 8>&- &
npm_packages watchers vitest "vite, webpack and other builds and watchers are not tried" --ignore-scripts \
	vite@7.1.12 rollup@4.52.5 nodemon@3.1.10 typescript@5.9.3 webpack@5.102.1 webpack-cli@6.0.1 vitest@4.0.3 jest@30.2.0 concurrently@9.2.1 \
	tsx@4.20.6 esbuild@0.25.11 8>&- &
# Dev servers that print errors of their pages.
npm_packages pages next "the test with pages of Vite and Next.js is skipped" --ignore-scripts vite@8.4.0 next@16.4.6 react@19.3.1 react-dom@19.3.1 \
	webpack@5.102.1 webpack-cli@6.0.1 webpack-dev-server@5.2.2 8>&- &
# Real MCP and ACP programs need Node 22.
npm_packages node22 node/bin/node "the tests with Node 22 are skipped" node@22.23.3 8>&- &
# An ACP agent's library, and an ACP agent.
npm_packages acp @moonshot-ai/kimi-code "the tests with the ACP SDK and Kimi Code are skipped" --ignore-scripts --omit=optional \
	@agentclientprotocol/sdk@2.4.0 @moonshot-ai/kimi-code@2.1.0 8>&- &
# Agents of other projects. Their install scripts put the program for this system in place.
npm_packages agents .bin/claude "the tests with Claude Code, Codex, Gemini CLI and OpenCode are skipped" \
	@anthropic-ai/claude-code@2.1.332 @openai/codex@0.171.0 @google/gemini-cli@0.61.0 opencode-ai@1.18.33 8>&- &
npm_packages more-agents .bin/copilot "the tests with Qwen Code and GitHub Copilot CLI are skipped" --ignore-scripts \
	@qwen-code/qwen-code@0.24.4 @github/copilot@1.0.102 8>&- &
# The official conformance suite of MCP, and its Inspector, an independent client.
npm_packages mcp @modelcontextprotocol/inspector "the tests with MCP's conformance suite and Inspector are skipped" --ignore-scripts \
	@modelcontextprotocol/conformance@0.1.16 @modelcontextprotocol/inspector@2.12.0 8>&- &
# Clients of MCP's events from other projects. They need Node 22.
npm_packages events @ai-sdk/mcp "the tests with the AI SDK's and the official MCP client are skipped" --ignore-scripts \
	@modelcontextprotocol/client@2.4.0 @ai-sdk/mcp@2.0.99 zod@4.1.12 8>&- &
# The NATS server that connects the nodes of a host.
{ scripts/nats-server.sh >/dev/null 2>&1 || echo "not installed, so its tests are skipped: nats-server (it takes Go modules and a network)"; } 8>&- &
identity_provider 8>&- &
wait
