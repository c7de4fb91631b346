#!/bin/bash
# usage: update-secrets.sh [VERSION]   copies the token forms of a gitleaks release, by default the newest one, to agent/redact/rules. Before you
# commit, look at the difference and run the tests of agent/redact.
set -eu
cd "$(dirname "$0")/.."
version=${1:-latest}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=$(cd "$work" && go mod init rules >/dev/null 2>&1 && go mod download -json "github.com/zricethezav/gitleaks/v8@$version")
field() { sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",*\$/\1/p" <<<"$found"; }
dir=$(field Dir) version=$(field Version)
go run ./internal/tools/secretrules -version "$version" "$dir/config/gitleaks.toml" >"$work/gitleaks.txt"
install -m 644 "$work/gitleaks.txt" agent/redact/rules/gitleaks.txt
install -m 644 "$dir/LICENSE" agent/redact/rules/LICENSE.gitleaks
echo "agent/redact/rules/gitleaks.txt: $(grep -vc '^#' agent/redact/rules/gitleaks.txt) forms of gitleaks $version"
