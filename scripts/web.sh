#!/bin/bash
# Puts what the page of tether-host takes from npm where it is embedded. Without npm or a network the host is built all the same and
# shows its plain page; that is said here, and is no failure. With --need it is one.
set -eu
cd "$(dirname "$0")/.."
vendor=host/web/static/vendor modules=bin/tools/web
if [ -f "$vendor/.versions" ] && cmp -s "$vendor/.versions" host/web/package-lock.json; then
	exit 0
fi
mkdir -p "$modules"
cp host/web/package.json host/web/package-lock.json "$modules/"
if ! command -v npm >/dev/null || ! (cd "$modules" && timeout 90 npm ci --ignore-scripts --silent --no-audit --no-fund --fetch-retries=1 --fetch-timeout=20000 >/dev/null 2>&1); then
	echo "tether-host shows its plain page: xterm.js was not installed (it takes npm and a network)"
	[ "${1:-}" != --need ]
	exit
fi
cp "$modules/node_modules/@xterm/xterm/css/xterm.css" "$modules/node_modules/@xterm/xterm/LICENSE" "$vendor/"
for file in xterm/lib/xterm addon-search/lib/addon-search; do
	# Without the reference to a map that is not served.
	sed '/^\/\/# sourceMappingURL=/d' "$modules/node_modules/@xterm/$file.mjs" >"$vendor/${file##*/}.mjs"
done
cp host/web/package-lock.json "$vendor/.versions"
