#!/bin/bash
# Builds both programs for every system that we ship, into dist/. make release does that, too, so CI does not run this. make test links and runs
# the tests for Linux and Windows, and make lint type-checks all.
set -eu
cd "$(dirname "$0")/.."
scripts/web.sh
# The settings of make lint and make release, so that nothing is compiled twice.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath"
for os in linux darwin windows; do
	for arch in amd64 arm64; do
		echo "== $os/$arch"
		mkdir -p "dist/$os-$arch"
		GOOS=$os GOARCH=$arch go build -buildvcs=auto -ldflags='-s -w' -o "dist/$os-$arch/" ./cmd/...
	done
done
