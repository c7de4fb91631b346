package host_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// No output, no messages to terminals, no input, request or refusal text is in the log at
// any level, nor in the record.
func TestNothingThatIsPrintedIsWrittenDown(t *testing.T) {
	testkit.Leaks(t)
	var log, record testkit.Output
	logger := zerolog.New(&log).Level(zerolog.TraceLevel)
	var mu sync.Mutex
	_, url := serve(t, host.Options{Logger: &logger, Sessions: true, Runner: &fakeRunner{procs: map[string]*fakeProcess{}},
		Access: newUsers("machine-laptop", "operator-bot", "admin-ann"),
		Audit: func(ev rights.AuditEvent) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&record, "%+v\n", ev)
		}})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	p := clientTerminal(uri, "laptop")
	p.Name, p.Cwd = "canary-name", "file:///canary-cwd"
	must.Do(t, laptop.call(ahp.MethodCreateTerminal, p, nil))
	laptop.output(uri, "canary-output\r\n", 0)
	one := int64(1)
	for _, a := range []ahp.Action{ahp.TerminalTitleChanged{Title: "canary-title"}, ahp.TerminalCwdChanged{Cwd: "file:///canary-cwd2"},
		ahp.TerminalCommandExecuted{CommandID: "canary-id", CommandLine: "canary-command", Timestamp: 1},
		ahp.TerminalCommandFinished{CommandID: "canary-id", ExitCode: &one}, ahp.TerminalInput{Data: "canary-input"}, ahp.TerminalExited{ExitCode: &one},
		ahp.TerminalOutput{Data: "canary-late"}} {
		laptop.dispatch(uri, a)
	}
	laptop.ping()

	ann := as(t, url, "admin-ann", "ann", viewOptions{subs: []string{ahp.RootURI, uri}})
	const shell = "ahp-terminal:/shell"
	must.Do(t, ann.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: shell, Claim: ahp.ClientClaim("ann"), Name: "canary-shell"}, nil))
	for _, where := range []string{shell, uri} { // accepted and refused
		ann.dispatch(where, ahp.TerminalInput{Data: "canary-typed"})
	}
	ann.dispatchRaw(uri, []byte(`{"type":"terminal/output","data":["canary-garbage"]}`))
	if err := ann.call("canary-method", map[string]string{"channel": "canary-channel"}, nil); err == nil {
		t.Error("an unknown method is answered")
	}
	if err := ann.subscribe("ahp-terminal:/canary-none"); err == nil {
		t.Error("what is not there can be subscribed to")
	}
	ann.ping()

	agent := must.Get(overHTTP(t, url, "operator-bot", nil))(t)
	var all []listed
	use(t, agent, "list_terminals", nil, &all)
	for _, one := range all {
		use(t, agent, "read_terminal", map[string]any{"terminalId": one.ID, "grep": "canary"}, &struct{}{})
		use(t, agent, "wait_terminal", map[string]any{"terminalId": one.ID, "pattern": "canary", "since": 0, "timeoutMs": 1}, &struct{}{})
	}
	for _, v := range []visit{{path: "/plain?canary-query"}, {path: "/events?tkn=canary-tkn"}, {path: "/terminals/canary-terminal.txt"}, {path: "/launch?code=canary-code"},
		{method: http.MethodPost, path: "/login", form: "token=canary-token", origin: "http" + strings.TrimPrefix(url, "ws")}, pressing(url, "#canary-code"), {path: "/events", token: "canary-bearer"},
		{path: "/canary-path"}, {path: "/plain", cookie: "tether_host=canary-cookie"}} {
		ask(t, url, v)
	}
	for _, v := range []*viewer{laptop, ann} {
		v.close()
	}
	testkit.Eventually(t, patience, "all is written down", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Count(record.String(), rights.AuditEnded) >= 2 && strings.Count(log.String(), "disconnected") >= 2
	})
	mu.Lock()
	defer mu.Unlock()
	for name, text := range map[string]string{"log": log.String(), "record": record.String()} {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "canary") {
				t.Errorf("the %s has %s", name, line)
			}
		}
	}
}
