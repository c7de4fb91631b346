#!/bin/bash
# Runs all tests as Windows programs under Wine 10, which it installs first (scripts/wine.sh: once, as root, on Debian). It fails if Wine cannot
# be installed: tests that did not run must not look as if they had passed. Tests of features that Wine or Windows lacks are skipped by name
# and listed at the end by reason; docs/PLATFORMS.md says more. Arguments are passed to go test, also packages if they begin with "./".
#
# Only these tests use the build tag wine: see platform/pty/console_wine_windows.go.
set -eu
cd "$(dirname "$0")/.."
mkdir -p bin/tools
exec 9>bin/tools/wine.lock
flock 9
scripts/wine.sh setup
trap 'scripts/wine.sh stop' EXIT
scripts/wine.sh start 9>&-
CGO_ENABLED=0 go build -trimpath -o bin/tools/testrun ./internal/tools/testrun
unset TETHER_XTERM TETHER_TEST_NODE_MODULES TETHER_TEST_PROGRAMS # set by make test: Wine's root has no node, and the programs are for Linux
# Wine's powershell.exe does nothing, so the person's shell is cmd.exe.
# The settings of make lint and make release, so that nothing is compiled twice.
export SHELL='C:\windows\system32\cmd.exe' GOOS=windows GOARCH=amd64 CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath"
# Slow packages start first. The rules of the sources are the same on all systems.
# shellcheck disable=SC2046 # several words
case " $* " in *" ./"*) ;; *) set -- "$@" ./agent/local ./agent ./host ./cmd/tether $(go list ./... | grep -v /houserules | sed "s|^tether/|./|") ;; esac
# More packages than processors, since tests mostly wait for Wine.
bin/tools/testrun -again -vet=off -tags wine -exec "$PWD/scripts/wine.sh" -p 4 -timeout 40m "$@" 9>&-
