#!/bin/bash
# Tests the page of tether-host in Chromium, and keeps screenshots in bin/screenshots for people to look at. Without Chromium or xterm.js, the tests
# are skipped by name, with the reason.
set -eu
cd "$(dirname "$0")/.."
scripts/test-tools.sh >/dev/null
# web.sh installs playwright, which drives the browser, together with xterm.js. If playwright is missing, install both again.
[ -d bin/tools/web/node_modules/playwright-core ] || rm -f host/web/static/vendor/.versions
scripts/web.sh
mkdir -p bin/screenshots
CGO_ENABLED=0 go build -trimpath -o bin/tools/testrun ./internal/tools/testrun
TETHER_SCREENSHOTS=$PWD/bin/screenshots exec bin/tools/testrun -again -race -vet=off -timeout 40m "$@" ./host/web
