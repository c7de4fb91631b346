#!/bin/bash
# Tests the page of tether-host in Chromium, and keeps pictures of it in bin/screenshots for people to look at.
set -eu
cd "$(dirname "$0")/.."
scripts/test-tools.sh >/dev/null
scripts/web.sh
mkdir -p bin/screenshots
TETHER_SCREENSHOTS=$PWD/bin/screenshots exec go test -race -timeout 10m "$@" ./host/web
