#!/bin/bash
# Installs what tests talk to, where it can: shells as root with apt, the rest with npm below bin/tools. What is missing afterwards is
# named; the tests that need it skip themselves and say so.
set -eu
cd "$(dirname "$0")/.."
mkdir -p bin/tools

# vscode_host installs a real agent host that nobody here wrote. With its name as the argument nothing else is installed.
vscode_host() {
	local host=bin/tools/vscode-host
	[ ! -d "$host/vs/out" ] || return 0
	rm -rf "$host"
	if ! command -v npm >/dev/null || ! timeout 300 bash scripts/vscode-host.sh install "$host" >/dev/null 2>&1; then
		rm -rf "$host"
		echo "not installed, so its tests are skipped: VS Code's agent host (it takes npm and a network)"
	fi
}
[ "${1:-}" != vscode-host ] || { vscode_host; exit; }

shells="bash zsh fish ksh mksh busybox"
missing() { for tool in $shells; do command -v "$tool" >/dev/null || echo -n "$tool "; done; }
want=$(missing)
if [ -n "$want" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing $want"
	log=$(mktemp)
	# shellcheck disable=SC2086 # several words
	if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $want; } >"$log" 2>&1; then
		tail -n 5 "$log"
	fi
	rm -f "$log"
fi
want=$(missing)
[ -z "$want" ] || echo "not installed, so their tests are skipped: $want"

# lsof is what macOS leads sockets back to processes with.
if ! command -v lsof >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends lsof >/dev/null 2>&1 || true
fi
command -v lsof >/dev/null || echo "not installed, so its test is skipped: lsof"

# These run tether as people do.
ways="make script tmux screen ssh sshd cron unshare"
missing_ways() { for tool in $ways; do command -v "$tool" >/dev/null || echo -n "$tool "; done; }
if [ -n "$(missing_ways)" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -q --no-install-recommends make bsdutils tmux screen openssh-client openssh-server cron util-linux >/dev/null 2>&1 || true
fi
[ -z "$(missing_ways)" ] || echo "not installed, so their tests are skipped: $(missing_ways)"

# These ask, build, serve and watch, to see whether it is found what waits for somebody.
asks="sudo fzf dialog nano fdisk lua5.4 ed bc zip gpg vim less gdb sqlite3 entr inotifywait python3 perl wget curl"
missing_asks() { for tool in $asks; do command -v "$tool" >/dev/null || echo -n "$tool "; done; }
if [ -n "$(missing_asks)" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -y -q --no-install-recommends sudo fzf dialog nano fdisk lua5.4 ed bc zip gpg vim less gdb \
		sqlite3 entr inotify-tools python3 perl wget curl >/dev/null 2>&1 || true
fi
[ -z "$(missing_asks)" ] || echo "not installed, so they are skipped where programs that ask are tried: $(missing_asks)"
watchers=bin/tools/watchers
if [ ! -d "$watchers/node_modules/vitest" ]; then
	rm -rf "$watchers"
	if ! command -v npm >/dev/null || ! timeout 300 npm install --prefix "$watchers" --no-save --ignore-scripts --silent --no-audit --no-fund \
		vite@7.1.12 rollup@4.52.5 nodemon@3.1.10 typescript@5.9.3 webpack@5.102.1 webpack-cli@6.0.1 vitest@4.0.3 jest@30.2.0 concurrently@9.2.1 tsx@4.20.6 \
		esbuild@0.25.11 >/dev/null 2>&1; then
		rm -rf "$watchers"
		echo "not installed, so they are skipped where builds and watchers are tried: vite, webpack and others (they take npm and a network)"
	fi
fi

# A real keyring keeps a secret, on a session bus of its own.
keyring() { command -v gnome-keyring-daemon && command -v dbus-run-session && command -v dbus-send; } >/dev/null
if ! keyring && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -q --no-install-recommends gnome-keyring dbus dbus-daemon >/dev/null 2>&1 || true
fi
keyring || echo "not installed, so its test is skipped: GNOME's keyring"

# A real browser tries the local door as pages do.
browser() { command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
if ! browser && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing Chromium"
	{ apt-get update -q && DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -q --no-install-recommends chromium-headless-shell; } >/dev/null 2>&1 || true
fi
browser || echo "not installed, so its tests are skipped: Chromium (it takes apt and a network)"

# xterm.js is the oracle for the scanner, the grammar reads the script for PowerShell, nu is a shell, jsQR reads QR codes.
node=bin/tools/node modules=$PWD/bin/tools/node/node_modules
if [ ! -d "$modules/@xterm/headless" ] || [ ! -d "$modules/jsqr" ]; then
	rm -rf "$node"
	if ! command -v npm >/dev/null || ! timeout 300 npm install --prefix "$node" --no-save --ignore-scripts --silent \
		@xterm/headless@6.0.0 web-tree-sitter@0.27.1 tree-sitter-powershell@0.26.4 nushell@0.115.1 jsqr@1.4.0 >/dev/null 2>&1; then
		rm -rf "$node"
		echo "not installed, so their tests are skipped: xterm.js, PowerShell's grammar, nushell, jsQR (they take npm and a network)"
	fi
fi
for nu in "$modules"/@nushell/*/bin/nu; do
	[ ! -x "$nu" ] || { mkdir -p "$node/bin" && ln -sf "$nu" "$node/bin/nu"; }
done

# Node 22 is what real MCP and ACP programs want.
node22=bin/tools/node22
if [ ! -x "$node22/node_modules/node/bin/node" ]; then
	rm -rf "$node22"
	if ! command -v npm >/dev/null || ! timeout 300 npm install --prefix "$node22" --no-save --silent node@22.23.3 >/dev/null 2>&1; then
		rm -rf "$node22"
		echo "not installed: Node 22 (it takes npm and a network)"
	fi
fi

# An ACP agent's library, and an ACP agent.
acp=bin/tools/acp
if [ ! -d "$acp/node_modules/@moonshot-ai/kimi-code" ]; then
	rm -rf "$acp"
	if ! command -v npm >/dev/null || ! timeout 300 npm install --prefix "$acp" --no-save --ignore-scripts --omit=optional --silent \
		@agentclientprotocol/sdk@2.4.0 @moonshot-ai/kimi-code@2.1.0 >/dev/null 2>&1; then
		rm -rf "$acp"
		echo "not installed, so their tests are skipped: the ACP SDK, Kimi Code (they take npm and a network)"
	fi
fi

# Agents that nobody here wrote. Their install scripts put the program of this system in place.
agents=bin/tools/agents
if [ ! -e "$agents/node_modules/.bin/claude" ]; then
	rm -rf "$agents"
	if ! command -v npm >/dev/null || ! timeout 600 npm install --prefix "$agents" --no-save --silent --no-audit --no-fund \
		@anthropic-ai/claude-code@2.1.197 @openai/codex@0.169.0 @google/gemini-cli@0.61.0 opencode-ai@1.18.33 >/dev/null 2>&1; then
		rm -rf "$agents"
		echo "not installed, so their tests are skipped: Claude Code, Codex, Gemini CLI, OpenCode (they take npm and a network)"
	fi
fi

# The official conformance suite of MCP, and its Inspector, an independent client.
mcp=bin/tools/mcp
if [ ! -d "$mcp/node_modules/@modelcontextprotocol/inspector" ]; then
	rm -rf "$mcp"
	if ! command -v npm >/dev/null || ! timeout 300 npm install --prefix "$mcp" --no-save --ignore-scripts --silent \
		@modelcontextprotocol/conformance@0.1.16 @modelcontextprotocol/inspector@2.12.0 >/dev/null 2>&1; then
		rm -rf "$mcp"
		echo "not installed, so their tests are skipped: MCP's conformance suite and Inspector (they take npm and a network)"
	fi
fi

# Clients of MCP's events that nobody here wrote. They want Node 22.
events=bin/tools/events
if [ ! -d "$events/node_modules/@ai-sdk/mcp" ]; then
	rm -rf "$events"
	if ! command -v npm >/dev/null || ! timeout 300 npm install --prefix "$events" --no-save --ignore-scripts --silent --no-audit --no-fund \
		@modelcontextprotocol/client@2.4.0 @ai-sdk/mcp@2.0.99 zod@4.1.12 >/dev/null 2>&1; then
		rm -rf "$events"
		echo "not installed, so their tests are skipped: the AI SDK's and the official MCP client (they take npm and a network)"
	fi
fi

# The servers over which several hosts are one.
scripts/nats-server.sh >/dev/null 2>&1 || echo "not installed, so its tests are skipped: nats-server (it takes Go modules and a network)"

# An identity provider that nobody here wrote, with which people log in at the host.
provider=bin/tools/oidc-provider
if [ ! -x "$provider" ]; then
	made=$(mktemp -d)
	if GOBIN=$made timeout 300 go install github.com/zitadel/oidc/v3/example/server@v3.51.17 >/dev/null 2>&1; then
		mv "$made/server" "$provider"
	else
		echo "not installed, so its test is skipped: an identity provider (it takes Go modules and a network)"
	fi
	rm -rf "$made"
fi

vscode_host
