#!/bin/bash
# usage: web.sh [--need]   copies the npm packages of tether-host's page to where the host embeds them. Without npm or a network, the host can be
# built all the same and shows its plain page: the script says so and succeeds. With --need it fails.
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
	# Drop the reference to a source map, which the host does not serve.
	sed '/^\/\/# sourceMappingURL=/d' "$modules/node_modules/@xterm/$file.mjs" >"$vendor/${file##*/}.mjs"
done
cp host/web/package-lock.json "$vendor/.versions"
