package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
)

// FuzzConversation sends any lines as the messages of one client. The host continues,
// every message of its own is valid JSON, and another client's terminal is unchanged.
func FuzzConversation(f *testing.F) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"channel":"ahp-root://","protocolVersions":["0.9.0"],"clientId":"f",` +
		`"_meta":{"tether/clientTerminals":{"versions":[1]}},"initialSubscriptions":["ahp-root://","ahp-terminal:/t1"]}}` + "\n"
	const create = `{"jsonrpc":"2.0","id":2,"method":"createTerminal","params":{"channel":"ahp-terminal:/f","executionTarget":"client","claim":{"kind":"client","clientId":"f"}}}` + "\n"
	output := string(ahp.AppendOutput(nil, "ahp-terminal:/f", 1, []byte("a\x1b[1mb\r\n\xff"), 0)) + "\n"
	for _, seed := range []string{
		hello + create + output + output,
		hello + create + `{"jsonrpc":"2.0","id":3,"method":"subscribe","params":{"channel":"ahp-terminal:/f"}}` + "\n" + output +
			`{"jsonrpc":"2.0","id":4,"method":"disposeTerminal","params":{"channel":"ahp-terminal:/f"}}`,
		hello + `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"ahp-terminal:/t1","clientSeq":1,"action":{"type":"terminal/output","data":"\ud800"}}}`,
		hello + `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"ahp-root://","clientSeq":1,"action":{"type":"root/configChanged","config":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"reconnect","params":{"clientId":"laptop","lastSeenServerSeq":0,"subscriptions":["ahp-terminal:/t1"]}}`,
		hello + create + `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"ahp-terminal:/f","clientSeq":1,"action":{"type":"terminal/commandExecuted","commandId":"1","commandLine":"\u0000","timestamp":1}}}` +
			"\n" + output + `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"ahp-terminal:/f","action":{"type":"terminal/commandFinished","commandId":"1","exitCode":-7,"durationMs":1e300}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		h := host.New(host.Options{LogBytes: 2000, Scrollback: 1000})
		defer h.Close()
		owner := connect(t, h, "laptop-2", viewOptions{})
		owner.create(uri)
		owner.output(uri, "mine", -1)
		owner.ping()
		near, far := testkit.Channels()
		served, read := make(chan struct{}), make(chan struct{})
		go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
		go func() {
			defer close(read)
			for {
				msg, err := near.Recv(context.Background())
				if err != nil {
					return
				}
				if !json.Valid(msg) {
					t.Errorf("the host sent %q", msg)
				}
			}
		}()
		for line := range bytes.Lines(script) {
			if near.Send(context.Background(), bytes.TrimSuffix(line, []byte("\n"))) != nil {
				break
			}
		}
		near.Close()
		<-served
		<-read
		if bytes.Contains(script, []byte("disposeTerminal")) {
			return // of any terminal, by anyone
		}
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
		if got := watcher.state(uri).Text(); got != "mine" {
			t.Errorf("the terminal of another client holds %q", got)
		}
	})
}
