package ahp_test

import (
	"strings"
	"testing"

	"tether/ahp"
)

// decodes reads raw into a T and compares the error's text; want "" means no error.
func decodes[T any](t *testing.T, raw, want string) {
	t.Helper()
	var v T
	got := ""
	if err := ahp.DecodeParams([]byte(raw), &v); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%.200s\n got error %q\nwant error %q", raw, got, want)
	}
}

func TestInitializeParams(t *testing.T) {
	with := func(members string) string { return `{"protocolVersions":["1.0.0"],"clientId":"c",` + members + `}` }
	for raw, want := range map[string]string{
		`{"channel":"ahp-root://","protocolVersions":["1.0.0"],"clientId":"c"}`: "",
		`{"protocolVersions":["1.0.0"],"clientId":"c"}`:                         "",
		`{"protocolVersions":["1.0.0"],"clientId":""}`:                          "clientId is missing or empty",
		`{"protocolVersions":["1.0.0"]}`:                                        "clientId is missing or empty",
		`{"protocolVersions":["1.0.0"],"clientId":7}`:                           "clientId has the wrong type: number",
		`{"protocolVersions":["1.0.0"],"clientId":null}`:                        "clientId is missing or empty",
		`{"protocolVersions":["1.0.0"],"clientId":"a\u0007"}`:                   "clientId holds a character that is not printable",
		`{"protocolVersions":"1.0.0","clientId":"c"}`:                           "protocolVersions has the wrong type: string",
		`{"protocolVersions":[],"clientId":"c"}`:                                "protocolVersions is missing or empty",
		``:                                                                      "protocolVersions is missing or empty",
		`[]`:                                                                    "value has the wrong type: array",
		`{"clientId"`:                                                           "unexpected end of JSON input",
		with(`"channel":"agenthost:/root"`):                                     `channel is "agenthost:/root", want "ahp-root://"`,
		with(`"initialSubscriptions":[""]`):                                     "initialSubscriptions[0] is missing",
		with(`"initialSubscriptions":["x"]`):                                    `initialSubscriptions[0] "x" has no scheme`,
		with(`"clientInfo":{"name":"n"}`):                                       "",
		with(`"capabilities":{"mcpApps":{}}`):                                   "",
		with(`"_meta":{"other":[1]}`):                                           "",
		with(`"_meta":[]`):                                                      "_meta has the wrong type: array",
	} {
		decodes[ahp.InitializeParams](t, raw, want)
	}
	long := strings.Repeat("c", ahp.MaxClientID+1)
	decodes[ahp.InitializeParams](t, `{"protocolVersions":["1.0.0"],"clientId":"`+long+`"}`,
		"clientId has 257 bytes, at most 256 are allowed")
	many := strings.Repeat(`"a:b",`, ahp.MaxSubscriptions) + `"a:b"`
	decodes[ahp.InitializeParams](t, with(`"initialSubscriptions":[`+many+`]`),
		"initialSubscriptions has 1025 entries, at most 1024 are allowed")
}

func TestReconnectParams(t *testing.T) {
	for raw, want := range map[string]string{
		`{"clientId":"c","lastSeenServerSeq":0,"subscriptions":[]}`:           "",
		`{"clientId":"c","lastSeenServerSeq":3000000000}`:                     "",
		`{"clientId":"c","lastSeenServerSeq":-1}`:                             "lastSeenServerSeq is -1, want 0 or more",
		`{"clientId":"c","lastSeenServerSeq":1e99}`:                           "lastSeenServerSeq has the wrong type: number 1e99",
		`{"clientId":"c","subscriptions":["a:b","c d:e"]}`:                    "subscriptions[1] holds a space or a character that is not printable",
		`{"clientId":"","subscriptions":[]}`:                                  "clientId is missing or empty",
		`{"channel":"ahp-terminal:/x","clientId":"c","lastSeenServerSeq":-0}`: `channel is "ahp-terminal:/x", want "ahp-root://"`,
	} {
		decodes[ahp.ReconnectParams](t, raw, want)
	}
}

func TestCreateTerminalParams(t *testing.T) {
	with := func(members string) string {
		return `{"channel":"ahp-terminal:/x","claim":{"kind":"client","clientId":"c"}` + members + `}`
	}
	const session = `"claim":{"kind":"session","session":"ahp-session:/s","chat":"ahp-chat:/c"}`
	for raw, want := range map[string]string{
		with(``): "",
		with(`,"name":"build","cwd":"file:///w","cols":1,"rows":1000,"executionTarget":"client"`): "",
		with(`,"cwd":"/plain/path","executionTarget":"server","future":1`):                        "",
		with(`,"cols":null,"rows":null`):                                                          "",
		with(`,"cols":0`):                                                                         "cols is 0, want 1 to 1000",
		with(`,"cols":-1`):                                                                        "cols is -1, want 1 to 1000",
		with(`,"cols":80,"rows":70000`):                                                           "rows is 70000, want 1 to 1000",
		with(`,"rows":1001`):                                                                      "rows is 1001, want 1 to 1000",
		with(`,"rows":24.5`):                                                                      "rows has the wrong type: number 24.5",
		with(`,"rows":"24"`):                                                                      "rows has the wrong type: string",
		with(`,"rows":9223372036854775808`):                                                       "rows has the wrong type: number 9223372036854775808",
		with(`,"executionTarget":"moon"`):                                                         `executionTarget is "moon", want "server" or "client"`,
		with(`,"executionTarget":true`):                                                           "executionTarget has the wrong type: bool",
		with(`,"name":5`):                                                                         "name has the wrong type: number",
		with(`,"name":"` + strings.Repeat("n", ahp.MaxTitle+1) + `"`):                             "name has 4097 bytes, at most 4096 are allowed",
		with(`,"cwd":"` + strings.Repeat("/", ahp.MaxCwd+1) + `"`):                                "cwd has 4097 bytes, at most 4096 are allowed",
		`{"claim":{"kind":"client","clientId":"c"}}`:                                              "channel is missing",
		`{"channel":"terminal","claim":{"kind":"client","clientId":"c"}}`:                         `channel "terminal" has no scheme`,
		`{"channel":"a:b"}`:                                                                       "claim: kind is missing",
		`{"channel":"a:b",` + session + `}`:                                                       "",
		`{"channel":"a:b",` + session + `,"executionTarget":"client"}`:                            `executionTarget "client" needs a client claim: no client would own the pty`,
	} {
		decodes[ahp.CreateTerminalParams](t, raw, want)
	}
}

func TestClaim(t *testing.T) {
	for raw, want := range map[string]string{
		`{"kind":"client","clientId":"c"}`:                               "",
		`{"kind":"client","clientId":"c","session":"ignored"}`:           "",
		`{"kind":"session","session":"copilot:/s1"}`:                     "", // before 0.9.0
		`{"kind":"session","session":"a:/s","chat":"b:/c","turnId":"t"}`: "",
		`{"kind":"client"}`:                                              "claim: clientId is missing or empty",
		`{"kind":"client","clientId":""}`:                                "claim: clientId is missing or empty",
		`{"kind":"client","clientId":null}`:                              "claim: clientId is missing or empty",
		`{"kind":"client","clientId":7}`:                                 "claim: clientId is not a string",
		`{"kind":"client","clientId":["c"]}`:                             "claim: clientId is not a string",
		`{"kind":"client","clientId":"c","toolCallId":false}`:            "claim: toolCallId is not a string",
		`{"kind":"client","clientId":"a\u001bb"}`:                        "claim: clientId holds a character that is not printable",
		`{"kind":"session"}`:                                             "claim: session is missing",
		`{"kind":"session","session":"s"}`:                               `claim: session "s" has no scheme`,
		`{"kind":"session","session":"a:/s","chat":""}`:                  "",
		`{"kind":"session","session":"a:/s","chat":"c"}`:                 `claim: chat "c" has no scheme`,
		`{"kind":"session","session":"a:/s","chat":{}}`:                  "claim: chat is not a string",
		`{"kind":"session","session":"a:/s","turnId":"` + tooLong + `"}`: "claim: turnId has 2049 bytes, at most 2048 are allowed",
		`{"kind":"nobody"}`:                                              `claim: kind is "nobody", want "client" or "session"`,
		`{"kind":5,"clientId":"c"}`:                                      "claim: kind is not a string",
		`{}`:                                                             "claim: kind is missing",
		`null`:                                                           "claim: not an object",
		`"client"`:                                                       "claim: not an object",
		`["client","c"]`:                                                 "claim: not an object",
	} {
		decodes[ahp.Claim](t, raw, want)
	}
}

var tooLong = strings.Repeat("x", ahp.MaxURI+1)

func TestHeldBy(t *testing.T) {
	for name, tt := range map[string]struct {
		claim ahp.Claim
		id    string
		want  bool
	}{
		"own":                 {ahp.ClientClaim("c"), "c", true},
		"another's":           {ahp.ClientClaim("d"), "c", false},
		"nobody's, no id":     {ahp.ClientClaim(""), "", false},
		"zero":                {ahp.Claim{}, "", false},
		"session naming mine": {ahp.Claim{Kind: ahp.ClaimSession, ClientID: "c"}, "c", false},
		"unreadable":          {ahp.Claim{Kind: ahp.ClaimClient, ClientID: "c", Problem: "claim: chat is not a string"}, "c", false},
	} {
		if got := tt.claim.HeldBy(tt.id); got != tt.want {
			t.Errorf("%s: %+v.HeldBy(%q) = %v, want %v", name, tt.claim, tt.id, got, tt.want)
		}
	}
}

func TestChannelParams(t *testing.T) {
	for raw, want := range map[string]string{
		`{"channel":"ahp-root://"}`:                       "",
		`{"channel":"agenthost-terminal://shell/1"}`:      "",
		`{"channel":"a+b-c.9:"}`:                          "",
		`{"channel":"file:///größe"}`:                     "",
		`{}`:                                              "channel is missing",
		`{"channel":":x"}`:                                `channel ":x" has no scheme`,
		`{"channel":"9a:x"}`:                              `channel "9a:x" has no scheme`,
		`{"channel":"a_b:x"}`:                             `channel "a_b:x" has no scheme`,
		`{"channel":"a:b c"}`:                             "channel holds a space or a character that is not printable",
		`{"channel":"a:b\n"}`:                             "channel holds a space or a character that is not printable",
		`{"channel":"a:b\u009b"}`:                         "channel holds a space or a character that is not printable",
		`{"channel":"a:` + tooLong[2:] + `"}`:             "channel has 2049 bytes, at most 2048 are allowed",
		`{"channel":"a:b","delivery":{"maxLatencyMs":0}}`: "",
	} {
		decodes[ahp.SubscribeParams](t, raw, want)
		decodes[ahp.UnsubscribeParams](t, raw, want)
		decodes[ahp.DisposeTerminalParams](t, raw, want)
	}
	decodes[ahp.AckParams](t, `{"channel":"a:b","applied":-1}`, "applied is -1, want 0 or more")
	decodes[ahp.AckParams](t, `{"channel":"a:b","applied":0}`, "")
	decodes[ahp.AckParams](t, `{"applied":0}`, "channel is missing")
	decodes[ahp.ReconnectResult](t, `{"type":"live"}`, `reconnect: type is "live", want "replay" or "snapshot"`)
}

func TestValidateAction(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n+1) }
	for raw, want := range map[string]string{
		`{"type":"terminal/resized","cols":80,"rows":24}`:                                     "",
		`{"type":"terminal/resized","cols":0,"rows":24}`:                                      "terminal/resized: cols is 0, want 1 to 1000",
		`{"type":"terminal/resized","cols":80,"rows":-24}`:                                    "terminal/resized: rows is -24, want 1 to 1000",
		`{"type":"terminal/resized","cols":70000,"rows":24}`:                                  "terminal/resized: cols is 70000, want 1 to 1000",
		`{"type":"terminal/claimed","claim":{"kind":"client","clientId":4}}`:                  "terminal/claimed: claim: clientId is not a string",
		`{"type":"terminal/titleChanged","title":""}`:                                         "",
		`{"type":"terminal/titleChanged","title":"` + long(ahp.MaxTitle) + `"}`:               "terminal/titleChanged: title has 4097 bytes, at most 4096 are allowed",
		`{"type":"terminal/cwdChanged","cwd":"` + long(ahp.MaxCwd) + `"}`:                     "terminal/cwdChanged: cwd has 4097 bytes, at most 4096 are allowed",
		`{"type":"terminal/data","data":"` + long(ahp.MaxData) + `"}`:                         "terminal/data: data has 1048577 bytes, at most 1048576 are allowed",
		`{"type":"terminal/output","data":"` + long(ahp.MaxData) + `"}`:                       "terminal/output: data has 1048577 bytes, at most 1048576 are allowed",
		`{"type":"terminal/input","data":"` + long(ahp.MaxData) + `"}`:                        "terminal/input: data has 1048577 bytes, at most 1048576 are allowed",
		`{"type":"terminal/output","data":"","_meta":{"tether/offset":-3}}`:                   "terminal/output: tether/offset is -3, want 0 or more",
		`{"type":"terminal/output","data":"","_meta":{"tether/offset":3,"x":1}}`:              "",
		`{"type":"terminal/commandExecuted","commandId":"","commandLine":"","timestamp":1}`:   "terminal/commandExecuted: commandId is empty",
		`{"type":"terminal/commandFinished","commandId":"a","durationMs":-0.5}`:               "terminal/commandFinished: durationMs is -0.5, want 0 or more",
		`{"type":"terminal/commandFinished","commandId":"` + long(ahp.MaxCommandID) + `"}`:    "terminal/commandFinished: commandId has 257 bytes, at most 256 are allowed",
		`{"type":"terminal/commandFinished","commandId":"a","exitCode":-1,"durationMs":0.25}`: "",
		`{"type":"terminal/cleared"}`:                                                         "",
		`{"type":"future/thing","cols":0}`:                                                    "",
		`{"type":"terminal/resized","cols":80}`:                                               "terminal/resized: rows is missing",
		`{"type":"terminal/resized","cols":80,"rows":null}`:                                   "terminal/resized: rows is missing",
		`{"type":"terminal/resized","cols":"80","rows":24}`:                                   "terminal/resized: cols has the wrong type: string",
		`{"type":"terminal/data"}`:                                                            "terminal/data: data is missing",
		`{"type":"terminal/data","data":["x"]}`:                                               "terminal/data: data has the wrong type: array",
		`{"type":"terminal/exited","exitCode":"0"}`:                                           "terminal/exited: exitCode has the wrong type: string",
		`{"type":"root/terminalsChanged"}`:                                                    "root/terminalsChanged: terminals is missing",
		`{"type":"root/configChanged","config":[]}`:                                           "root/configChanged: config has the wrong type: array",
		`{"type":""}`:   "action: type is missing",
		`{"type":null}`: "action: type is not a string",
		`{"type":3}`:    "action: type is not a string",
		`{}`:            "action: type is missing",
		`null`:          "action: type is missing",
		`[]`:            "action: jsonspan: not a JSON object",
		`{"type":"x"`:   "action: jsonspan: unexpected end at byte 11",
	} {
		a, err := ahp.DecodeAction([]byte(raw))
		if err == nil {
			err = ahp.ValidateAction(a)
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.200s\n got error %q\nwant error %q", raw, got, want)
		}
	}
	line := ahp.TerminalCommandExecuted{CommandID: "a", CommandLine: long(ahp.MaxCommandLine)}
	if err := ahp.ValidateAction(line); err == nil {
		t.Error("a command line beyond MaxCommandLine passes")
	}
}

func TestDirectories(t *testing.T) {
	for path, uri := range map[string]string{
		"/": "file:///", "/usr": "file:///usr", "/a b/ü%": "file:///a%20b/%C3%BC%25", "/x?y#z": "file:///x%3Fy%23z", `C:\Users\me`: "file:///C:/Users/me",
		"//server/x": "file:////server/x",
	} {
		if got := ahp.FileURI(path); got != uri {
			t.Errorf("the URI of %s is %s, want %s", path, got, uri)
		}
		if got := ahp.PathOf(uri); got != path {
			t.Errorf("the path of %s is %s, want %s", uri, got, path)
		}
	}
	for uri, path := range map[string]string{
		"file://localhost/usr": "/usr", "": "", "/plain": "/plain", "file://elsewhere/x": "file://elsewhere/x", "vscode-remote://x/y": "vscode-remote://x/y",
		"file:": "file:", "%": "%", "file:///c:": "c:", "file:///ab:/x": "/ab:/x",
	} {
		if got := ahp.PathOf(uri); got != path {
			t.Errorf("the path of %s is %s, want %s", uri, got, path)
		}
	}
	for path, want := range map[string]string{"": "", "file:///usr": "file:///usr", "relative": "relative", "/" + strings.Repeat("ü", ahp.MaxCwd/3): ""} {
		if got := ahp.FileURI(path); got != want {
			t.Errorf("the URI of %.20s is %.20s, want %s", path, got, want)
		}
	}
}
