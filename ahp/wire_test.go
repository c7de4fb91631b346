package ahp_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"tether/ahp"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// wire checks that text decodes to value, and that value encodes to text.
func wire[T any](text string, value T) func(t *testing.T) {
	return func(t *testing.T) {
		t.Helper()
		check.Equal(t, "decoded", value, reads[T](t, text))
		got := must.Get(json.Marshal(value))(t)
		equalExactly(t, []byte(text), got)
	}
}

// The messages of the proposal and those around them, as they are on the wire.
func TestWire(t *testing.T) {
	running := ahp.Lifecycle{Status: ahp.StatusRunning}
	claim := ahp.ClientClaim("laptop-7f3a")
	tests := map[string]func(t *testing.T){
		"initialize": wire(
			`{"channel":"ahp-root://","protocolVersions":["1.0.0","0.9.0"],"clientId":"laptop-7f3a",
			"clientInfo":{"name":"tether","version":"0.1.0"},"initialSubscriptions":["ahp-root://"],"locale":"de-CH",
			"capabilities":{"mcpApps":{}},"_meta":{"tether/clientTerminals":{"versions":[1]}}}`,
			ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: []string{"1.0.0", "0.9.0"}, ClientID: "laptop-7f3a",
				ClientInfo: &ahp.Implementation{Name: "tether", Version: "0.1.0"}, InitialSubscriptions: []string{ahp.RootURI},
				Locale: "de-CH", Capabilities: json.RawMessage(`{"mcpApps":{}}`), Meta: ahp.NewClientMeta()}),
		"its result": wire(
			`{"protocolVersion":"1.0.0","serverSeq":42,"serverInfo":{"name":"example-host"},"defaultDirectory":"file:///w",
			"completionTriggerCharacters":["/","@"],"snapshots":[{"resource":"ahp-root://","fromSeq":42,"state":{"agents":[]}}]}`,
			ahp.InitializeResult{ProtocolVersion: "1.0.0", ServerSeq: 42, ServerInfo: &ahp.Implementation{Name: "example-host"},
				DefaultDirectory: "file:///w", CompletionTriggerCharacters: []string{"/", "@"},
				Snapshots: []ahp.Snapshot{{Resource: ahp.RootURI, FromSeq: 42, State: json.RawMessage(`{"agents":[]}`)}}}),
		"reconnect": wire(
			`{"channel":"ahp-root://","clientId":"c","lastSeenServerSeq":3000000000,"subscriptions":["ahp-root://","ahp-terminal:/1"]}`,
			ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "c", LastSeenServerSeq: 3_000_000_000,
				Subscriptions: []string{ahp.RootURI, "ahp-terminal:/1"}}),
		"a replay": wire(
			`{"type":"replay","missing":["ahp-terminal:/2"],"actions":[{"channel":"ahp-terminal:/1","serverSeq":57,
			"origin":{"clientId":"viewer-2","clientSeq":0},"rejectionReason":"held","action":{"type":"terminal/input","data":"x"}}]}`,
			ahp.ReconnectResult{Type: ahp.ReconnectReplay, Missing: []string{"ahp-terminal:/2"}, Actions: []ahp.Envelope{{
				Channel: "ahp-terminal:/1", ServerSeq: 57, Origin: &ahp.Origin{ClientID: "viewer-2"},
				RejectionReason: new("held"), Action: json.RawMessage(`{"type":"terminal/input","data":"x"}`)}}}),
		"a state instead": wire(
			`{"type":"snapshot","snapshots":[{"resource":"ahp-root://","fromSeq":1,"state":{}}]}`,
			ahp.ReconnectResult{Type: ahp.ReconnectSnapshot, Snapshots: []ahp.Snapshot{
				{Resource: ahp.RootURI, FromSeq: 1, State: json.RawMessage(`{}`)}}}),
		"createTerminal": wire(
			`{"channel":"ahp-terminal:/6d1e","claim":{"kind":"client","clientId":"laptop-7f3a"},"name":"build",
			"cwd":"file:///home/u/src","cols":120,"rows":30,"executionTarget":"client"}`,
			ahp.CreateTerminalParams{Channel: ahp.NewTerminalURI("6d1e"), Claim: claim, Name: "build", Cwd: "file:///home/u/src",
				Cols: new(int64(120)), Rows: new(int64(30)), ExecutionTarget: ahp.TargetClient}),
		"subscribe": wire(`{"channel":"a:b","delivery":{"maxLatencyMs":0}}`,
			ahp.SubscribeParams{Channel: "a:b", Delivery: &ahp.Delivery{MaxLatencyMs: new(int64(0))}}),
		"dispatchAction": wire(`{"channel":"a:b","clientSeq":0,"action":{"type":"terminal/cleared"}}`,
			ahp.DispatchParams{Channel: "a:b", Action: json.RawMessage(`{"type":"terminal/cleared"}`)}),
		"the acknowledgement": wire(`{"channel":"a:b","applied":120}`, ahp.AckParams{Channel: "a:b", Applied: 120}),
		"listSessions": wire(`{"channel":"ahp-root://","limit":50,"cursor":"x"}`,
			ahp.ListSessionsParams{Channel: ahp.RootURI, Limit: 50, Cursor: "x"}),
		"its page": wire(
			`{"items":[{"resource":"ahp-session:/s1","provider":"demo","title":"T","status":8,"createdAt":"2026-10-01T00:00:00.000Z",
			"modifiedAt":"2026-10-01T00:00:00.000Z","workingDirectories":["file:///w"]}],"nextCursor":"y"}`,
			ahp.ListSessionsResult{NextCursor: "y", Items: []ahp.SessionSummary{{Resource: "ahp-session:/s1", Provider: "demo", Title: "T",
				Status: ahp.SessionInProgress, CreatedAt: "2026-10-01T00:00:00.000Z", ModifiedAt: "2026-10-01T00:00:00.000Z",
				WorkingDirectories: []string{"file:///w"}}}}),
		"root/sessionRemoved": wire(`{"channel":"ahp-root://","session":"ahp-session:/s1"}`,
			ahp.SessionRemovedParams{Channel: ahp.RootURI, Session: "ahp-session:/s1"}),
		"root/sessionSummaryChanged": wire(`{"channel":"ahp-root://","session":"ahp-session:/s1","changes":{"status":8}}`,
			ahp.SessionSummaryChangedParams{Channel: ahp.RootURI, Session: "ahp-session:/s1",
				Changes: ahp.PartialSessionSummary{Status: new(ahp.SessionInProgress)}}),
		"the catalogue's entry": wire(
			`{"resource":"ahp-terminal:/6d1e","title":"build","claim":{"kind":"client","clientId":"laptop-7f3a"},
			"lifecycle":{"status":"running"},"executionTarget":"client"}`,
			ahp.TerminalInfo{Resource: "ahp-terminal:/6d1e", Title: "build", Claim: claim, Lifecycle: running, ExecutionTarget: ahp.TargetClient}),
		"the terminal's state": wire(
			`{"title":"build","cwd":"file:///w","cols":120,"rows":30,"lifecycle":{"status":"exited","exitCode":-1},"isPty":true,
			"claim":{"kind":"session","session":"ahp-session:/s","chat":"ahp-chat:/c","turnId":"t","toolCallId":"tc"},
			"supportsCommandDetection":true,"executionTarget":"server","content":[{"type":"unclassified","value":"$ "},
			{"type":"command","commandId":"1","commandLine":"make","output":"ok","timestamp":5,"isComplete":true,"exitCode":0,"durationMs":1.5}]}`,
			ahp.TerminalState{Title: "build", Cwd: "file:///w", Cols: 120, Rows: 30, Lifecycle: ahp.Exited(new(int64(-1))), IsPty: new(true),
				Claim:                    ahp.Claim{Kind: ahp.ClaimSession, Session: "ahp-session:/s", Chat: "ahp-chat:/c", TurnID: "t", ToolCallID: "tc"},
				SupportsCommandDetection: true, ExecutionTarget: ahp.TargetServer, Content: []ahp.ContentPart{
					{Type: ahp.PartUnclassified, Value: "$ "},
					{Type: ahp.PartCommand, CommandID: "1", CommandLine: "make", Output: "ok", Timestamp: 5, IsComplete: true,
						ExitCode: new(int64(0)), DurationMs: new(1.5)}}}),
		"a terminal in a tool call": wire(
			`{"type":"terminal","resource":"ahp-terminal:/1","title":"npm test","isPty":false,"result":{"exitCode":1,"truncated":true}}`,
			ahp.TerminalBlock{Type: "terminal", Resource: "ahp-terminal:/1", Title: "npm test", IsPty: new(false),
				Result: &ahp.TerminalResult{ExitCode: new(int64(1)), Truncated: new(true)}}),
	}
	for name, test := range tests {
		t.Run(name, test)
	}
}

// Every action that has a type, encoded and decoded.
func TestWireActions(t *testing.T) {
	for text, want := range map[string]ahp.Action{
		`{"type":"terminal/data","data":"x"}`:                                                                      ahp.TerminalData{Data: "x"},
		`{"type":"terminal/output","data":"x","_meta":{"tether/offset":9}}`:                                        ahp.TerminalOutput{Data: "x", Offset: new(int64(9))},
		`{"type":"terminal/input","data":"x"}`:                                                                     ahp.TerminalInput{Data: "x"},
		`{"type":"terminal/resized","cols":80,"rows":24}`:                                                          ahp.TerminalResized{Cols: 80, Rows: 24},
		`{"type":"terminal/claimed","claim":{"kind":"client","clientId":"c"}}`:                                     ahp.TerminalClaimed{Claim: ahp.ClientClaim("c")},
		`{"type":"terminal/titleChanged","title":"t"}`:                                                             ahp.TerminalTitleChanged{Title: "t"},
		`{"type":"terminal/cwdChanged","cwd":"/w"}`:                                                                ahp.TerminalCwdChanged{Cwd: "/w"},
		`{"type":"terminal/exited","exitCode":130}`:                                                                ahp.TerminalExited{ExitCode: new(int64(130))},
		`{"type":"terminal/cleared"}`:                                                                              ahp.TerminalCleared{},
		`{"type":"terminal/commandDetectionAvailable"}`:                                                            ahp.TerminalCommandDetectionAvailable{},
		`{"type":"terminal/commandExecuted","commandId":"1","commandLine":"ls","timestamp":1}`:                     ahp.TerminalCommandExecuted{CommandID: "1", CommandLine: "ls", Timestamp: 1},
		`{"type":"terminal/commandFinished","commandId":"1","exitCode":2,"durationMs":3}`:                          ahp.TerminalCommandFinished{CommandID: "1", ExitCode: new(int64(2)), DurationMs: new(3.0)},
		`{"type":"root/activeSessionsChanged","activeSessions":0}`:                                                 ahp.RootActiveSessionsChanged{},
		`{"type":"root/configChanged","config":{"a":1},"replace":true}`:                                            ahp.RootConfigChanged{Config: map[string]json.RawMessage{"a": json.RawMessage("1")}, Replace: true},
		`{"type":"root/agentsChanged","agents":[{"provider":"p","displayName":"d","description":"","models":[]}]}`: ahp.RootAgentsChanged{Agents: []ahp.AgentInfo{{Provider: "p", DisplayName: "d", Models: []json.RawMessage{}}}},
		`{"type":"root/terminalsChanged","terminals":[]}`:                                                          ahp.RootTerminalsChanged{Terminals: []ahp.TerminalInfo{}},
		`{"type":"chat/usage","turnId":"t"}`:                                                                       ahp.UnknownAction{Kind: "chat/usage", Raw: json.RawMessage(`{"type":"chat/usage","turnId":"t"}`)},
	} {
		got, err := ahp.DecodeAction([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		check.Equal(t, fmt.Sprintf("%s decoded", text), want, got)
		if again := string(ahp.AppendAction(nil, want)); again != text {
			t.Errorf("encoded\n got %s\nwant %s", again, text)
		}
		message := ahp.AppendDispatch(nil, "a:b", 4, want, "1.0.0")
		d, err := ahp.DecodeDispatch(params(t, ahp.MethodDispatchAction, message))
		if err != nil || d.Channel != "a:b" || d.ClientSeq != 4 || d.Kind != want.Type() || string(d.Action) != text {
			t.Errorf("dispatched: %+v, %v", d, err)
		}
	}
}
