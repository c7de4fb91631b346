#!/bin/bash
# Installs the programs that tests use, then runs all tests with the race detector, also those of the bench, a module of its own. If make test-windows has installed Wine, or if CI=true, which
# installs it, all tests run again as Windows programs. Arguments are passed to go test; with arguments, tests run on this system only.
set -eu
cd "$(dirname "$0")/.."
scripts/test-tools.sh & # waits for the network while the processors compile
tools=$!
# Some tests start tether and tether-host as they are shipped. All of them use these builds.
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/test-programs/ ./cmd/...
CGO_ENABLED=0 go build -trimpath -o bin/tools/testrun ./internal/tools/testrun # shares compiled packages with them
[ $# != 0 ] || go build -race ./...
wait $tools
node=$PWD/bin/tools/node
if [ -d "$node/node_modules" ]; then
	export PATH=$PATH:$node/bin TETHER_XTERM=$node TETHER_TEST_NODE_MODULES=$node/node_modules
fi
run=$PWD/bin/tools/testrun
export TETHER_TEST_PROGRAMS=$PWD/bin/test-programs
# Most tests wait for processes, so more packages and tests than processors run at a time; with more than these, times in which programs of
# others must answer pass on a slow machine. -vet=off, because make lint vets everything.
some() {
	"$run" -again -race -vet=off -timeout 60m -parallel 5 "$@"
}
if [ $# != 0 ]; then
	some -p 3 "$@" ./...
	cd bench
	some "$@" ./...
	exit
fi
# The tests of cmd/tether share their environment, so they run one after the other; two processes share them by their names.
some -run '^Test[A-M]' ./cmd/tether &
first=$!
some -skip '^Test[A-M]' ./cmd/tether &
second=$!
status=0
# shellcheck disable=SC2046 # several words; slow packages start first, so that none ends alone
some -p 3 ./host ./agent ./agent/local ./cmd/tether-host ./host/cluster ./agent/term ./agent/uplink ./shellint ./mcp ./screen ./platform/sandbox \
	$(go list ./... | grep -v '/cmd/tether$' | sed 's|^tether/|./|') || status=$?
for part in $first $second; do
	wait "$part" || status=$?
done
(cd bench && some ./...) || status=$?
[ $status = 0 ] || exit $status
if [ "${CI:-}" = true ] || [ -e bin/tools/wine/ok ]; then
	echo "on Windows, as Wine plays it:"
	scripts/test-windows.sh
else
	echo "not run: the same tests as Windows programs; make test-windows does, and installs Wine for it"
fi
