#!/bin/bash
# Tests the service under a real systemd: boots a Debian 12 in a container twice (scripts/container.sh), and runs
# scripts/test-systemd-inside.sh in it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/container.sh
container_open
CGO_ENABLED=0 go build -trimpath -o "$work/in/tether" ./cmd/tether
CGO_ENABLED=0 go test -c -trimpath -o "$work/in/limits.test" ./platform/limits
cp scripts/test-systemd-inside.sh "$work/in/inside.sh"
boot 1
boot 2
cat "$work/out/log"
