package ahp_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"tether/ahp"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestBothShapes(t *testing.T) {
	claim := ahp.ClientClaim("c")
	const head = `{"title":"zsh","content":[],"claim":{"kind":"client","clientId":"c"}`
	tests := map[string]struct {
		lifecycle ahp.Lifecycle
		old, new  string
		oldReads  ahp.Lifecycle // its content in the old shape
	}{
		"zero runs": {ahp.Lifecycle{}, head + `}`, head + `,"lifecycle":{"status":"running"}}`, ahp.Lifecycle{Status: "running"}},
		"running":   {ahp.Lifecycle{Status: "running"}, head + `}`, head + `,"lifecycle":{"status":"running"}}`, ahp.Lifecycle{Status: "running"}},
		"exited": {ahp.Exited(new(int64(3))), head + `,"exitCode":3}`, head + `,"lifecycle":{"status":"exited","exitCode":3}}`,
			ahp.Exited(new(int64(3)))},
		"exited without a code": {ahp.Exited(nil), head + `,"exitCode":-1}`, head + `,"lifecycle":{"status":"exited"}}`,
			ahp.Exited(new(int64(-1)))},
		"of the future": {ahp.Lifecycle{Status: "paused"}, head + `}`, head + `,"lifecycle":{"status":"paused"}}`, ahp.Lifecycle{Status: "running"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := ahp.TerminalState{Title: "zsh", Claim: claim, Lifecycle: tt.lifecycle}
			for version, want := range map[string]string{"0.7.0": tt.old, "0.8.0": tt.old, "0.9.0": tt.new, "1.0.0": tt.new, "1.1.0": tt.new} {
				if got := string(s.MarshalFor(version)); got != want {
					t.Errorf("for %s\n got %s\nwant %s", version, got, want)
				}
			}
			check.Equal(t, "read from the old shape", tt.oldReads, reads[ahp.TerminalState](t, tt.old).Lifecycle)
			newest, err := json.Marshal(s)
			if err != nil || string(newest) != tt.new {
				t.Errorf("json.Marshal: %s, %v", newest, err)
			}
		})
	}
}

func reads[T any](t *testing.T, raw string) T {
	t.Helper()
	var v T
	if err := ahp.DecodeParams([]byte(raw), &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// A host may write both members. The newer one counts, and null means absent.
func TestReadingBothMembers(t *testing.T) {
	for raw, want := range map[string]ahp.Lifecycle{
		`{"lifecycle":{"status":"exited","exitCode":1},"exitCode":2}`: ahp.Exited(new(int64(1))),
		`{"lifecycle":{"status":"running"},"exitCode":2}`:             {Status: "running"},
		`{"lifecycle":null,"exitCode":2}`:                             ahp.Exited(new(int64(2))),
		`{"exitCode":null}`:                                           {Status: "running"},
		`{"exitCode":0}`:                                              ahp.Exited(new(int64(0))),
	} {
		check.Equal(t, fmt.Sprintf("TerminalState %s", raw), want, reads[ahp.TerminalState](t, raw).Lifecycle)
		check.Equal(t, fmt.Sprintf("TerminalInfo %s", raw), want, reads[ahp.TerminalInfo](t, raw).Lifecycle)
	}
}

func TestCatalogueFor(t *testing.T) {
	infos := []ahp.TerminalInfo{
		{Resource: "ahp-terminal:/1", Title: "a<b", Claim: ahp.ClientClaim("c"), ExecutionTarget: ahp.TargetClient},
		{Resource: "ahp-terminal:/2", Claim: ahp.ClientClaim("c"), Lifecycle: ahp.Exited(new(int64(1)))},
	}
	const (
		one  = `{"resource":"ahp-terminal:/1","title":"a<b","claim":{"kind":"client","clientId":"c"},"executionTarget":"client"`
		two  = `{"resource":"ahp-terminal:/2","title":"","claim":{"kind":"client","clientId":"c"}`
		old  = `[` + one + `},` + two + `,"exitCode":1}]`
		next = `[` + one + `,"lifecycle":{"status":"running"}},` + two + `,"lifecycle":{"status":"exited","exitCode":1}}]`
	)
	for version, want := range map[string]string{"0.8.0": old, "0.9.0": next} {
		got := string(ahp.AppendActionFor(nil, ahp.RootTerminalsChanged{Terminals: infos}, version))
		check.Equal(t, fmt.Sprintf("action for %s", version), `{"type":"root/terminalsChanged","terminals":`+want+`}`, got)
		got = string(ahp.RootState{Terminals: infos}.MarshalFor(version))
		check.Equal(t, fmt.Sprintf("root state for %s", version), `{"agents":[],"terminals":`+want+`}`, got)
	}
}

// Required fields are written even when they are empty, and optional ones are never
// written as null.
func TestRequiredMembers(t *testing.T) {
	for want, v := range map[string]any{
		`{"agents":[]}`:                ahp.RootState{},
		`{"agents":[],"terminals":[]}`: ahp.RootState{Terminals: []ahp.TerminalInfo{}},
		`{"provider":"","displayName":"","description":"","models":[]}`:         ahp.AgentInfo{},
		`{"protocolVersion":"","serverSeq":0,"snapshots":[]}`:                   ahp.InitializeResult{},
		`{"channel":"","clientId":"","lastSeenServerSeq":0,"subscriptions":[]}`: ahp.ReconnectParams{},
		`{"type":"replay","actions":[],"missing":[]}`:                           ahp.ReconnectResult{Type: ahp.ReconnectReplay},
		`{"type":"snapshot","snapshots":[]}`:                                    ahp.ReconnectResult{Type: ahp.ReconnectSnapshot},
		`{"items":[]}`:                                                          ahp.ListSessionsResult{},
		`{"resource":"","state":{},"fromSeq":0}`:                                ahp.Snapshot{State: json.RawMessage("{}")},
		`{}`:                                                                    ahp.SubscribeResult{},
		`{"status":"running"}`:                                                  ahp.Lifecycle{},
		`{"type":"unclassified","value":""}`:                                    ahp.ContentPart{},
		`{"channel":"","claim":{"kind":""}}`:                                    ahp.CreateTerminalParams{},
		`{"channel":"","applied":0}`:                                            ahp.AckParams{},
		`{"channel":"","action":{},"serverSeq":0}`:                              ahp.Envelope{Action: json.RawMessage("{}")},
		`{"channel":"","clientSeq":0,"action":{}}`:                              ahp.DispatchParams{Action: json.RawMessage("{}")},
		`{"version":1,"graceMs":30000,"resume":true,"commandActions":true,"maxDataBytes":65536}`: ahp.NewClientTerminals(30_000),
		`{"type":"command","commandId":"","commandLine":"","output":"","timestamp":0,"isComplete":false}`: ahp.ContentPart{
			Type: ahp.PartCommand, DurationMs: new(math.NaN())},
	} {
		got, err := json.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("%T\n got %s, %v\nwant %s", v, got, err, want)
		}
	}
}

func TestAppendAction(t *testing.T) {
	for want, a := range map[string]ahp.Action{
		`{"type":"terminal/cleared"}`:                                          ahp.TerminalCleared{},
		`{"type":"terminal/commandDetectionAvailable"}`:                        ahp.TerminalCommandDetectionAvailable{},
		`{"type":"terminal/exited"}`:                                           ahp.TerminalExited{},
		`{"type":"terminal/exited","exitCode":0}`:                              ahp.TerminalExited{ExitCode: new(int64(0))},
		`{"type":"terminal/resized","cols":0,"rows":0}`:                        ahp.TerminalResized{},
		`{"type":"terminal/output","data":"<"}`:                                ahp.TerminalOutput{Data: "<"},
		`{"type":"terminal/output","data":"","_meta":{"tether/offset":0}}`:     ahp.TerminalOutput{Offset: new(int64(0))},
		`{"type":"terminal/commandFinished","commandId":"a","durationMs":1.5}`: ahp.TerminalCommandFinished{CommandID: "a", DurationMs: new(1.5)},
		`{"type":"terminal/commandFinished","commandId":"a"}`:                  ahp.TerminalCommandFinished{CommandID: "a", DurationMs: new(math.Inf(1))},
		`{"type":"root/agentsChanged","agents":[]}`:                            ahp.RootAgentsChanged{},
		`{"type":"root/terminalsChanged","terminals":[]}`:                      ahp.RootTerminalsChanged{},
		`{"type":"root/configChanged","config":{}}`:                            ahp.RootConfigChanged{},
		`{"type":"future/x","y":[1, 2]}`:                                       ahp.UnknownAction{Kind: "future/x", Raw: []byte(`{"type":"future/x","y":[1, 2]}`)},
		`{"type":"future/\"x"}`:                                                ahp.UnknownAction{Kind: `future/"x`},
	} {
		if got := string(ahp.AppendAction([]byte("."), a)); got != "."+want {
			t.Errorf("%T\n got %s\nwant .%s", a, got, want)
		}
	}
}

func TestDecodedActionKeepsNoReference(t *testing.T) {
	raw := []byte(`{"type":"future/x","y":1}`)
	a := must.Get(ahp.DecodeAction(raw))(t)
	clear(raw)
	if got := string(ahp.AppendAction(nil, a)); got != `{"type":"future/x","y":1}` {
		t.Errorf("after the input changed: %s", got)
	}
}

// Two states reduced from one must not share a growing slice.
func TestReducersDoNotShare(t *testing.T) {
	base := ahp.TerminalState{Content: make([]ahp.ContentPart, 0, 8)}
	base = ahp.ReduceTerminal(base, ahp.TerminalCommandExecuted{CommandID: "0"})
	base = ahp.ReduceTerminal(base, ahp.TerminalCommandFinished{CommandID: "0"})
	left := ahp.ReduceTerminal(base, ahp.TerminalData{Data: "left"})
	right := ahp.ReduceTerminal(base, ahp.TerminalData{Data: "right"})
	if left.Text() != "left" || right.Text() != "right" || base.Text() != "" {
		t.Errorf("left %q, right %q, base %q", left.Text(), right.Text(), base.Text())
	}
	cloned := left.Clone()
	cloned.Content[1].Value = "changed"
	if left.Text() != "left" {
		t.Errorf("a change of the clone is seen: %q", left.Text())
	}
	config := ahp.RootState{Config: &ahp.RootConfig{Values: map[string]json.RawMessage{"a": json.RawMessage("1")}}}
	next := ahp.ReduceRoot(config, ahp.RootConfigChanged{Config: map[string]json.RawMessage{"a": json.RawMessage("2")}})
	if string(config.Config.Values["a"]) != "1" || string(next.Config.Values["a"]) != "2" {
		t.Errorf("before %s, after %s", config.Config.Values["a"], next.Config.Values["a"])
	}
}

func TestText(t *testing.T) {
	s := ahp.TerminalState{Content: []ahp.ContentPart{
		{Type: ahp.PartUnclassified, Value: "$ "},
		{Type: ahp.PartCommand, CommandLine: "no", Output: "out", Value: "no"},
		{Type: "future", Raw: []byte(`{"type":"future"}`)},
		{Type: ahp.PartUnclassified, Value: "$"},
	}}
	if got := s.Text(); got != "$ out$" {
		t.Errorf("got %q", got)
	}
}
