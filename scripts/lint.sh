#!/bin/bash
# Runs few checks, with pinned tools; each failure is fatal. One exception: without a connection to its database, the check for known
# vulnerabilities is skipped, and the output says so.
set -eu
cd "$(dirname "$0")/.."
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.8.0
tools=$PWD/bin/tools
# The settings of make cross and make release, which reuse what is compiled here.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath"
failed=0
check() { echo "== $1"; shift; "$@" || failed=1; }

unformatted() { local files; files=$(gofmt -l .); [ -z "$files" ] || { echo "not formatted (make fmt):"; echo "$files"; return 1; }; }

# The database is on the network. Exit status 3 means that vulnerabilities were found; other statuses mean that the check failed.
vulnerabilities() {
	local out status=0
	out=$("$tools/govulncheck" ./... 2>&1) || status=$?
	case $status in
	0) ;;
	3) echo "$out"; return 1 ;;
	*) if grep -qE 'fetching vulnerabilities|vuln\.go\.dev' <<<"$out"; then
			echo "vulnerability check SKIPPED, its database cannot be reached: $(tail -n 1 <<<"$out")"
		else
			echo "$out"
			return 1
		fi ;;
	esac
}

GOBIN=$tools go install "$staticcheck"
GOBIN=$tools go install "$govulncheck"
check gofmt unformatted
for os in linux darwin windows; do
	for module in . bench; do
		check "go vet, $os, $module" env GOOS=$os go vet -C $module ./...
	done
	[ $os = linux ] && systems=./... || systems="./platform/... ./installer/..." # nothing else differs between systems: a house rule
	# shellcheck disable=SC2086 # several words
	check "staticcheck, $os" env GOOS=$os "$tools/staticcheck" $systems
done
check "staticcheck, bench" env -C bench "$tools/staticcheck" ./...
check govulncheck vulnerabilities
for module in . bench; do
	check "go mod tidy, $module" go mod tidy -C $module -diff
done
[ $failed = 0 ] && echo "lint: ok" || { echo "lint: FAILED"; exit 1; }
