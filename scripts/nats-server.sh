#!/bin/bash
# Installs the NATS server for tests and trials of clusters below bin/tools, unless it is there.
set -eu
cd "$(dirname "$0")/.."
nats=bin/tools/nats-server
[ ! -x "$nats" ] || exit 0
mkdir -p bin/tools
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
GOBIN=$made timeout 300 go install github.com/nats-io/nats-server/v2@v2.15.2
mv "$made/nats-server" "$nats"
