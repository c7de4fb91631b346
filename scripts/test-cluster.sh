#!/bin/bash
# Tests a host of several nodes for longer than make test: it kills a node of three 50 times (TETHER_TEST_KILLS) under a flood, freezes nodes,
# restarts NATS servers, and puts a proxy before them that drops and delays messages and cuts connections. The tests of the page run at another
# node than the machines'. Arguments are passed to go test.
set -eu
cd "$(dirname "$0")/.."
scripts/nats-server.sh
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$programs/" ./cmd/...
export TETHER_TEST_PROGRAMS=$programs TETHER_TEST_KILLS=${TETHER_TEST_KILLS:-50}
go test -race -timeout 60m -p 1 -run 'Node|Engine|Server|Lease|Owner|Machine|Following|Upgrade' "$@" ./host/cluster
go test -race -timeout 60m -p 1 -run 'Node|Upgrade' "$@" ./cmd/tether-host
# The page, at another node than the machines', where a browser is installed (make test-web).
TETHER_TEST_NODES=2 TETHER_SCREENSHOTS=$programs go test -race -vet=off -timeout 30m "$@" ./host/web
