#!/bin/bash
# Tests the page of tether-host in Chromium, and keeps pictures of it in bin/screenshots for people to look at. Where there is
# no Chromium or no xterm.js, the tests are skipped by name, with the reason.
set -eu
cd "$(dirname "$0")/.."
scripts/test-tools.sh >/dev/null
# With xterm.js comes what drives the browser; who has taken away the one gets both again.
[ -d bin/tools/web/node_modules/playwright-core ] || rm -f host/web/static/vendor/.versions
scripts/web.sh
mkdir -p bin/screenshots
CGO_ENABLED=0 go build -trimpath -o bin/tools/testrun ./internal/tools/testrun
TETHER_SCREENSHOTS=$PWD/bin/screenshots exec bin/tools/testrun -again -race -vet=off -timeout 15m "$@" ./host/web
