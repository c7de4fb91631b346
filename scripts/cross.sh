#!/bin/bash
# Builds both programs for every system we ship, into dist/, and links all tests for macOS, where go test starts true(1) instead of them. make
# test links and runs those of Linux and Windows, and make lint checks the types of all.
set -eu
cd "$(dirname "$0")/.."
scripts/web.sh
# One setting for all that is compiled, also by make lint: then nothing is compiled twice.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath"
for os in linux darwin windows; do
	for arch in amd64 arm64; do
		echo "== $os/$arch"
		mkdir -p "dist/$os-$arch"
		GOOS=$os GOARCH=$arch go build -buildvcs=auto -ldflags='-s -w' -o "dist/$os-$arch/" ./cmd/...
	done
done
echo "== tests for darwin"
GOOS=darwin go test -vet=off -run '^$' -exec true ./... >/dev/null
