package ahp_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// elsewhere is a folder outside the project that may have the published cases, too, newer
// or more.
const elsewhere = "../../shared/cases/ahp"

// unsaid are what published cases of sessions and chats have and nothing here says:
// actions, statuses, and members. Of a chat, a session here never changes what those
// cases of chatUpdated do.
var unsaid = []string{"chat/error", "chat/activityChanged", "chat/responsePart", "chat/delta", "chat/toolCallDelta", "chat/toolCallResultConfirmed",
	"session/ready", "session/creationFailed", "session/activityChanged", "session/defaultChatChanged", "session/serverToolsChanged",
	"session/chatAdded", "session/chatUpdated", "session/chatRemoved",
	"pending-confirmation", "pending-result-confirmation", "auth-required", "markdown", "chatInput", "toolConfirmation", "toolAuthentication",
	"queuedMessages", "steeringMessage", "riskAssessment", "mcp", "inputRequest", "chat/toolCallConfirmed",
	"tool call complete from pending-confirmation defaults confirmed"}

type reducerCase struct {
	Description string
	Reducer     string
	Initial     json.RawMessage
	Actions     []json.RawMessage
	Expected    json.RawMessage
}

func TestReducerFixtures(t *testing.T) {
	for _, dir := range []struct{ path, version string }{
		{"testdata/reducers", "0.8.0"},
		{"testdata/derived", "1.0.0"},
		{elsewhere + "/reducers", "0.8.0"},
		{elsewhere + "/derived-0.9/reducers", "1.0.0"},
	} {
		for _, file := range files(t, dir.path) {
			t.Run(file, func(t *testing.T) {
				var c reducerCase
				raw := decode(t, file, &c)
				for _, word := range unsaid {
					if bytes.Contains(raw, []byte(`"`+word+`"`)) {
						t.Skip("no machine and no host here says ", word)
					}
				}
				switch c.Reducer {
				case "root":
					runReducer(t, c, dir.version, ahp.ReduceRoot)
				case "terminal":
					runReducer(t, c, dir.version, ahp.ReduceTerminal)
				case "session":
					runReducer(t, c, dir.version, ahp.ReduceSession)
				case "chat":
					runReducer(t, c, dir.version, func(s ahp.ChatState, a ahp.Action) ahp.ChatState {
						return ahp.ReduceChat(s, a, time.UnixMilli(9999)) // the time in the cases
					})
				default:
					t.Fatalf("reducer %q is not known", c.Reducer)
				}
			})
		}
	}
}

// encode writes a state in the shape of a version, if that makes a difference.
func encode(t *testing.T, state any, version string) []byte {
	t.Helper()
	if s, ok := state.(interface{ MarshalFor(version string) []byte }); ok {
		return s.MarshalFor(version)
	}
	return must.Get(json.Marshal(state))(t)
}

func runReducer[S any](t *testing.T, c reducerCase, version string, reduce func(S, ahp.Action) S) {
	var s S
	must.Do(t, json.Unmarshal(c.Initial, &s))
	equalJSON(t, "the initial state after decoding and encoding", c.Initial, encode(t, s, version))
	for _, raw := range c.Actions {
		a := must.Get(ahp.DecodeAction(raw))(t)
		equalJSON(t, "the action after decoding and encoding", raw, ahp.AppendActionFor(nil, a, version))
		before := encode(t, s, version)
		next := reduce(s, a)
		if after := encode(t, s, version); string(after) != string(before) {
			t.Errorf("%s changed the state it was given:\n%s", a.Type(), cmp.Diff(string(before), string(after)))
		}
		s = next
	}
	equalJSON(t, c.Description, c.Expected, encode(t, s, version))
}

type roundTripCase struct {
	Type              string
	Input             json.RawMessage
	AcceptableOutputs []json.RawMessage
}

// roundTrips decodes and encodes a wire type by its upstream name.
var roundTrips = map[string]func(raw []byte) ([]byte, error){
	"ActionEnvelope":        through[ahp.Envelope],
	"StateAction":           throughAction,
	"SessionStatus":         through[ahp.SessionStatus],
	"SessionSummary":        through[ahp.SessionSummary],
	"PartialSessionSummary": through[ahp.PartialSessionSummary],
	"SessionAddedParams":    through[ahp.SessionAddedParams],
	"Implementation":        through[ahp.Implementation],
	"InitializeResult":      through[ahp.InitializeResult],
	"StringOrMarkdown":      through[ahp.Text],
}

const (
	sessionSurface = "customizations, changesets, attachments, elicitations and forks of chats: tether takes part in tool calls, not in conversations"
	messageShape   = "JSON-RPC message shape: package jsonrpc"
)

// outOfScope lists the round trips that are not run, each with the reason.
var outOfScope = map[string]string{
	"003-customization-unknown-type-preserved.json":   sessionSurface,
	"008-jsonrpc-request.json":                        messageShape,
	"009-jsonrpc-notification.json":                   messageShape,
	"010-jsonrpc-success.json":                        messageShape,
	"011-jsonrpc-error.json":                          messageShape,
	"012-changeset-target-resource.json":              sessionSurface,
	"013-changeset-target-range.json":                 sessionSurface,
	"014-session-input-question-number.json":          sessionSurface,
	"015-session-input-question-integer.json":         sessionSurface,
	"027-agent-customization-model-and-tools.json":    sessionSurface,
	"032-chat-transcript-attachment.json":             sessionSurface,
	"040-chat-transcript-attachment-latest-turn.json": sessionSurface,
	"033-chat-source-side-chat.json":                  sessionSurface,
	"035-chat-source-side-chat-active.json":           sessionSurface,
	"036-chat-source-fork.json":                       sessionSurface,
	"038-chat-source-side-chat-selection.json":        sessionSurface,
}

func TestRoundTripFixtures(t *testing.T) {
	for _, dir := range []string{"testdata/round-trips", elsewhere + "/round-trips"} {
		seen := map[string]bool{}
		for _, file := range files(t, dir) {
			name := filepath.Base(file)
			seen[name] = true
			t.Run(file, func(t *testing.T) {
				var c roundTripCase
				decode(t, file, &c)
				run, ok := roundTrips[c.Type]
				_, listed := outOfScope[name]
				if !ok && !listed {
					t.Fatalf("type %s: it is neither run nor listed as out of scope", c.Type)
				}
				if listed {
					return
				}
				got := must.Get(run(c.Input))(t)
				equalExactly(t, c.AcceptableOutputs[0], got)
			})
		}
		for name := range outOfScope {
			if len(seen) > 0 && !seen[name] {
				t.Errorf("%s is listed as out of scope but not in %s", name, dir)
			}
		}
	}
}

// The blocks inside two envelopes, with their types.
func TestTerminalBlockFixtures(t *testing.T) {
	for _, name := range []string{"030-terminal-content-ispty.json", "031-terminal-content-completed.json"} {
		var c roundTripCase
		decode(t, "testdata/round-trips/"+name, &c)
		var e struct {
			Action struct{ Content []json.RawMessage }
		}
		must.Do(t, json.Unmarshal(c.Input, &e))
		got := must.Get(through[ahp.TerminalBlock](e.Action.Content[0]))(t)
		equalExactly(t, e.Action.Content[0], got)
	}
}

func through[T any](raw []byte) ([]byte, error) {
	var v T
	if err := ahp.DecodeParams(raw, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// TestEnvelopedActionFixtures decodes the actions in envelopes, which an Envelope keeps
// undecoded.
func TestEnvelopedActionFixtures(t *testing.T) {
	for _, file := range files(t, "testdata/round-trips") {
		var c roundTripCase
		if decode(t, file, &c); c.Type != "ActionEnvelope" {
			continue
		}
		var e ahp.Envelope
		must.Do(t, json.Unmarshal(c.Input, &e))
		got, err := throughAction(e.Action)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		equalExactly(t, e.Action, got)
	}
}

func throughAction(raw []byte) ([]byte, error) {
	a, err := ahp.DecodeAction(raw)
	if err != nil {
		return nil, err
	}
	return ahp.AppendAction(nil, a), nil
}

// files lists the cases of a folder. A folder outside the project may be absent and has
// none then; the project's own folder must have at least one.
func files(t *testing.T, dir string) []string {
	t.Helper()
	found := must.Get(filepath.Glob(dir + "/*.json"))(t)
	if len(found) == 0 && filepath.Dir(dir) == "testdata" {
		t.Fatalf("%s holds no cases", dir)
	}
	return found
}

func decode(t *testing.T, file string, v any) (raw []byte) {
	t.Helper()
	raw = must.Get(os.ReadFile(file))(t)
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return raw
}

// equalJSON compares JSON as the reducer cases demand: the order of keys does not matter,
// and null is absent.
func equalJSON(t *testing.T, what string, want, got []byte) {
	t.Helper()
	check.Equal(t, what, withoutNulls(value(t, want)), withoutNulls(value(t, got)))
}

// equalExactly compares JSON as the round trips demand: null is not absent.
func equalExactly(t *testing.T, want, got []byte) {
	t.Helper()
	check.Equal(t, "encoded again", value(t, want), value(t, got))
}

func value(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
		for k := range out {
			out[k] = withoutNulls(out[k])
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = withoutNulls(out[i])
		}
		return out
	}
	return v
}
