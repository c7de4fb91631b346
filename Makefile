# Every target is one line and works on a fresh clone with Go installed. CI runs these targets, too. Their scripts are in scripts/.
.PHONY: all run run-cluster test test-cluster test-windows test-systemd test-web soak lint fuzz bench bench-host bench-cluster web cross release test-release outdated record-problems build fmt
all: build
# Built before it runs, because it runs at the top, not in its own directory.
BENCH = go build -C bench -o ../bin/bench . && bin/bench

run: build ; bin/tether demo
run-cluster: ; scripts/run-cluster.sh
test: ; scripts/test.sh $(TESTFLAGS)
test-windows: ; scripts/test-windows.sh $(TESTFLAGS)
test-cluster: ; scripts/test-cluster.sh $(TESTFLAGS)
test-systemd: ; scripts/test-systemd.sh
test-web: ; scripts/test-web.sh $(TESTFLAGS)
soak: ; scripts/soak.sh $(SOAKTIME)
lint: ; scripts/lint.sh
fuzz: ; scripts/fuzz.sh $(FUZZTIME)
bench: build ; $(BENCH) $(BENCHFLAGS)
bench-host: build ; scripts/test-tools.sh vscode-host ; $(BENCH) -host $(BENCHFLAGS)
bench-cluster: build ; scripts/nats-server.sh ; $(BENCH) -cluster $(BENCHFLAGS)
web: ; scripts/web.sh --need
cross: ; scripts/cross.sh
release: ; scripts/release.sh $(RELEASEFLAGS)
outdated: ; go run ./internal/tools/outdated
test-release: release ; scripts/test-release.sh
build: ; scripts/web.sh; CGO_ENABLED=0 go build -buildvcs=auto -trimpath -ldflags='-s -w' -o bin/ ./cmd/...
record-problems: ; go run ./internal/tools/record $(RECORDFLAGS) $(TOOLS)
fmt: ; gofmt -w .
