#!/bin/bash
# Runs the whole module's tests as Windows programs under Wine 10, which it installs first (scripts/wine.sh: once, as root, on Debian).
# It fails when Wine cannot be had: tests that did not run must not look as if they had passed. What Wine or Windows cannot do is
# skipped by name and listed in the end, below its reason; docs/PLATFORMS.md says more. Arguments are passed to go test, packages too if
# they begin with "./".
#
# The build tag wine is for these tests alone: see platform/pty/console_wine_windows.go.
set -eu
cd "$(dirname "$0")/.."
mkdir -p bin/tools
exec 9>bin/tools/wine.lock
flock 9
scripts/wine.sh setup
trap 'scripts/wine.sh stop' EXIT
scripts/wine.sh start 9>&-
CGO_ENABLED=0 go build -trimpath -o bin/tools/testrun ./internal/tools/testrun
unset TETHER_XTERM TETHER_TEST_NODE_MODULES TETHER_TEST_PROGRAMS # of make test: there is no node in Wine's root, and these are for Linux
# Wine's powershell.exe does nothing, so the person's shell is cmd.exe.
# Compiled as by make lint and make cross, so that nothing is compiled twice.
export SHELL='C:\windows\system32\cmd.exe' GOOS=windows GOARCH=amd64 CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath"
case " $* " in *" ./"*) ;; *) set -- "$@" ./... ;; esac
bin/tools/testrun -again -vet=off -tags wine -exec "$PWD/scripts/wine.sh" -p 2 -timeout 10m "$@" 9>&-
