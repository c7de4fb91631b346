#!/bin/bash
# Runs the whole module's tests as Windows programs under Wine 10, which it installs first (scripts/wine.sh: once, as root, on Debian).
# It fails when Wine cannot be had: tests that did not run must not look as if they had passed. What Wine cannot do is skipped by name
# and listed in the end, each with its reason. Arguments are passed to go test.
#
# The build tag wine is for these tests alone: see platform/pty/console_wine_windows.go.
set -eu
cd "$(dirname "$0")/.."
scripts/wine.sh setup
trap 'scripts/wine.sh stop' EXIT
scripts/wine.sh start
go build -o bin/tools/testrun ./internal/tools/testrun
# Wine's powershell.exe does nothing, so the person's shell is cmd.exe.
export SHELL='C:\windows\system32\cmd.exe' GOOS=windows GOARCH=amd64 CGO_ENABLED=0
[ $# -gt 0 ] || set -- ./...
bin/tools/testrun -vet=off -tags wine -exec "$PWD/scripts/wine.sh" -p 2 -timeout 4m "$@"
