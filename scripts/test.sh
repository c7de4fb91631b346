#!/bin/bash
# Runs all tests with the race detector, after installing what they talk to. Arguments are passed to go test.
set -eu
cd "$(dirname "$0")/.."
scripts/test-tools.sh
node=$PWD/bin/tools/node
if [ -d "$node/node_modules" ]; then
	export PATH=$PATH:$node/bin TETHER_XTERM=$node TETHER_TEST_NODE_MODULES=$node/node_modules
fi
exec go run ./internal/tools/testrun -race -timeout 10m "$@" ./...
