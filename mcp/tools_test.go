package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/mcp"
	"tether/vocab"
)

type m = map[string]any

// The exact strings of the tools' contract.
func TestContract(t *testing.T) {
	const (
		user     = `{"id":"pty-abc123","cwd":"/project","owner":"user","visible":true,"createdAt":1706234567890,"status":"running","name":"sh"}`
		spawned  = `{"id":"pty-xyz789","cwd":"/path/to/project","owner":"agent","visible":false,"createdAt":1706234567890,"command":["npm","run","dev"]}`
		promoted = `{"id":"pty-xyz789","cwd":"/path/to/project","owner":"user","visible":true,"createdAt":1706234567890,"command":["npm","run","dev"]}`
	)
	f := &fakeTerminals{}
	f.add("pty-abc123", agenttools.OwnerUser).print("$ npm run dev\r\nServer started on port 3000\r\n")
	f.add("pty-quiet", agenttools.OwnerUser)
	session := one(t, f)
	for _, c := range []struct {
		name, tool string
		args       any
		want       string
		isError    bool
	}{
		{"list", "list_terminals", m{}, "[" + user + "," + strings.Replace(user, "abc123", "quiet", 1) + "]", false},
		{"spawn", "spawn_background_terminal", m{"cwd": "/path/to/project", "command": []string{"npm", "run", "dev"}}, spawned, false},
		{"spawn at a port", "spawn_background_terminal", m{"cwd": "/path/to/project", "command": []string{"npm", "run", "dev"}, "port": "3000"}, strings.Replace(spawned, "]}", `],"port":3000}`, 1), false},
		{"spawn at a number", "spawn_background_terminal", m{"cwd": "/path/to/project", "command": []string{"npm", "run", "dev"}, "port": 3000.0}, strings.Replace(spawned, "]}", `],"port":3000}`, 1), false},
		{"spawn without one", "spawn_background_terminal", m{"cwd": "/path/to/project", "command": []string{"npm", "run", "dev"}, "port": nil}, spawned, false},
		{"promote", "promote_terminal", m{"terminalId": "pty-xyz789"}, promoted, false},
		{"promote again", "promote_terminal", m{"terminalId": "pty-xyz789"}, "Terminal is already visible to the user", true},
		{"kill a promoted one", "kill_terminal", m{"terminalId": "pty-xyz789"}, "Cannot kill visible or user-owned terminals", true},
		{"kill the user's", "kill_terminal", m{"terminalId": "pty-abc123"}, "Cannot kill visible or user-owned terminals", true},
		{"kill one that does not exist", "kill_terminal", m{"terminalId": "pty-gone"}, `{"terminated":true,"id":"pty-gone"}`, false},
		{"type into the user's", "write_terminal", m{"terminalId": "pty-abc123", "input": "x"}, "Cannot write to visible or user-owned terminals", true},
		{"signal the user's", "signal_terminal", m{"terminalId": "pty-abc123", "signal": "SIGINT"}, "Cannot send signals to visible or user-owned terminals", true},
		{"read one that does not exist", "read_terminal", m{"terminalId": "pty-gone"}, `Terminal not found: "pty-gone"; list_terminals lists them`, true},
		{"promote one that does not exist", "promote_terminal", m{"terminalId": "pty-gone"}, `Terminal not found: "pty-gone"; list_terminals lists them`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, isError := answer(t, session, c.tool, c.args)
			if got != c.want || isError != c.isError {
				t.Errorf("%s %v\ngot  %s (error %t)\nwant %s (error %t)", c.tool, c.args, got, isError, c.want, c.isError)
			}
		})
	}
	got, _ := answer(t, session, "read_terminal", m{"terminalId": "pty-abc123"})
	if want := `{"terminalId":"pty-abc123","history":"$ npm run dev\nServer started on port 3000\n","cursor":44,"truncated":false,"exited":false}`; got != want {
		t.Errorf("read: %s, want %s", got, want)
	}
	if r := read(t, session, m{"terminalId": "pty-quiet"}); r.History != "" || r.TerminalID != "pty-quiet" {
		t.Errorf("a terminal without output: %+v", r)
	}
	for _, refusal := range []sentence{
		"Command blocked for security reasons", "Spawn rate limit exceeded (max 3/minute)", "Maximum concurrent agent terminals reached (5)",
	} {
		f.refuse = refusal
		if got, isError := answer(t, session, "spawn_background_terminal", m{"cwd": "/", "command": []string{"x"}}); got != string(refusal) || !isError {
			t.Errorf("refused with %q: %q, error %t", refusal, got, isError)
		}
	}
}

func TestKillOwn(t *testing.T) {
	f := &fakeTerminals{}
	f.add("pty-a", agenttools.OwnerAgent).print("out\r\n")
	session := one(t, f)
	for range 2 { // idempotent
		if got, _ := answer(t, session, "kill_terminal", m{"terminalId": "pty-a"}); got != `{"terminated":true,"id":"pty-a"}` {
			t.Errorf("kill: %s", got)
		}
	}
	r := read(t, session, m{"terminalId": "pty-a"})
	if !r.Exited || r.ExitCode == nil || *r.ExitCode != 137 || r.Signal != "SIGKILL" || r.Reason != "killed" || r.History != "out\n" {
		t.Errorf("what it printed, and how it ended, stay readable: %+v", r)
	}
	want := `[{"id":"pty-a","cwd":"/project","owner":"agent","visible":false,"createdAt":1706234567890,"status":"exited","name":"sh","exited":true,"exitCode":137,"signal":"SIGKILL","reason":"killed","exitedAt":1706234569000}]`
	if got, _ := answer(t, session, "list_terminals", m{}); got != want {
		t.Errorf("list: %s, want %s", got, want)
	}
}

func TestWriteAndSignal(t *testing.T) {
	f := &fakeTerminals{}
	own := f.add("pty-a", agenttools.OwnerAgent)
	own.print("$ ")
	session := one(t, f)
	var wrote struct {
		Written int
		Cursor  int64
	}
	decodeAnswer(t, session, "write_terminal", m{"terminalId": "pty-a", "input": "ls", "enter": true}, &wrote)
	decodeAnswer(t, session, "write_terminal", m{"terminalId": "pty-a", "input": "\x03"}, &wrote)
	if own.typed != "ls\r\x03" || wrote.Written != 1 || wrote.Cursor != 2 {
		t.Errorf("typed %q, answer %+v", own.typed, wrote)
	}
	answer(t, session, "signal_terminal", m{"terminalId": "pty-a", "signal": "SIGINT"})
	if own.signal != "SIGINT" {
		t.Errorf("signal %q", own.signal)
	}
	own.exit(vocab.Exit{})
	if got, isError := answer(t, session, "write_terminal", m{"terminalId": "pty-a", "input": "x"}); !isError || !strings.Contains(got, "has exited") {
		t.Errorf("to one that has exited: %q", got)
	}
}

func TestBadArguments(t *testing.T) {
	f := &fakeTerminals{}
	f.add("pty-a", agenttools.OwnerAgent)
	session := one(t, f)
	long := strings.Repeat("x", 70_000)
	for _, c := range []struct {
		tool string
		args any
		want string
	}{
		{"list_terminals", m{"all": true}, `unknown argument "all"; known arguments: none`},
		{"list_terminals", []string{}, "the arguments must be an object, not array"},
		{"read_terminal", m{}, "terminalId is missing; list_terminals lists the terminals"},
		{"read_terminal", nil, "terminalId is missing; list_terminals lists the terminals"},
		{"read_terminal", m{"terminalId": 7}, "terminalId must be a string, not number"},
		{"read_terminal", m{"terminal_id": "pty-a"}, `unknown argument "terminal_id"; known arguments: terminalId, run, since, tail, grep, maxBytes, format`},
		{"read_terminal", m{"terminalId": "pty-a", "since": -1}, "since -1 is out of range, it must be 0 to 9007199254740992"},
		{"read_terminal", m{"terminalId": "pty-a", "since": 1}, "since 1 is beyond the end of the output, 0"},
		{"read_terminal", m{"terminalId": "pty-a", "since": "x"}, "since must be a whole number, not string"},
		{"read_terminal", m{"terminalId": "pty-a", "since": 1.5}, "since must be a whole number, not number 1.5"},
		{"read_terminal", m{"terminalId": "pty-a", "tail": 0}, "tail 0 is out of range, it must be 1 to 100000"},
		{"read_terminal", m{"terminalId": "pty-a", "maxBytes": 1 << 21}, "maxBytes 2097152 is out of range, it must be 1 to 1048576"},
		{"read_terminal", m{"terminalId": "pty-a", "format": "html"}, `format "html" must be one of text, raw, screen, digest`},
		{"read_terminal", m{"terminalId": "pty-a", "grep": "("}, "grep: error parsing regexp: missing closing ): `(` (the syntax is RE2: no look-around, no back-references)"},
		{"read_terminal", m{"terminalId": "pty-a", "grep": strings.Repeat("a", 1001)}, "grep has 1001 bytes, at most 1000 are allowed"},
		{"read_terminal", m{"terminalId": "pty-\x1b[31m" + long}, `Terminal not found: "pty-\x1b[31mxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; list_terminals lists them`},
		{"spawn_background_terminal", m{"command": []string{"x"}}, "cwd is missing: the absolute path of a directory"},
		{"spawn_background_terminal", m{"cwd": "/"}, `command is missing: a program and its arguments, such as ["npm","run","dev"]`},
		{"spawn_background_terminal", m{"cwd": "/", "command": []string{""}}, `command is missing: a program and its arguments, such as ["npm","run","dev"]`},
		{"spawn_background_terminal", m{"cwd": "/", "command": "npm run dev"}, "command must be a list of strings, not string"},
		{"spawn_background_terminal", m{"cwd": "/", "command": []any{"x", 1}}, "command must be a string, not number"},
		{"spawn_background_terminal", m{"cwd": "/", "command": []string{"x\x00y"}}, "cwd and command must not contain NUL characters"},
		{"spawn_background_terminal", m{"cwd": "/", "command": slices.Repeat([]string{"x"}, 1001)}, "command is too long: at most 1000 words and 131072 bytes"},
		{"spawn_background_terminal", m{"cwd": "/", "command": []string{"x", long, long}}, "command is too long: at most 1000 words and 131072 bytes"},
		{"write_terminal", m{"terminalId": "pty-a", "input": ""}, "input has 0 bytes, it must be 1 to 65536"},
		{"write_terminal", m{"terminalId": "pty-a", "input": long}, "input has 70000 bytes, it must be 1 to 65536"},
		{"write_terminal", m{"terminalId": "pty-a", "input": "x", "enter": "yes"}, "enter must be true or false, not string"},
		{"signal_terminal", m{"terminalId": "pty-a", "signal": "9"}, `signal "9" must be one of SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGKILL, SIGTSTP, SIGSTOP, SIGCONT, SIGUSR1, SIGUSR2, SIGWINCH`},
		{"kill_terminal", m{}, "terminalId is missing; list_terminals lists the terminals"},
		{"promote_terminal", m{"terminalId": "pty-a", "visible": true}, `unknown argument "visible"; known arguments: terminalId`},
		{"wait_terminal", m{"terminalId": "pty-a", "pattern": "["}, "pattern: error parsing regexp: missing closing ]: `[` (the syntax is RE2: no look-around, no back-references)"},
		{"wait_terminal", m{"terminalId": "pty-a", "timeoutMs": 600001}, "timeoutMs 600001 is out of range, it must be 0 to 600000"},
		{"wait_terminal", m{"terminalId": "pty-a", "idleMs": 0}, "idleMs 0 is out of range, it must be 1 to 600000"},
		{"wait_terminal", m{"terminalId": "pty-a", "port": 0}, "port 0 is out of range, it must be 1 to 65535"},
		{"wait_terminal", m{"terminalId": "pty-a", "url": "http://example.com/"}, `url names "example.com", it must be localhost, 127.0.0.1 or [::1]`},
		{"wait_terminal", m{"terminalId": "pty-a", "url": "http://127.0.0.1@evil.example/"}, "url must not contain a user name or password"},
		{"wait_terminal", m{"terminalId": "pty-a", "url": "file:///etc/passwd"}, `url "file:///etc/passwd" must begin with http:// or https://`},
		{"wait_terminal", m{"terminalId": "pty-a", "since": 9}, "since 9 is beyond the end of the output, 0"},
		{"wait_terminal", m{"terminalId": "pty-a", "command": true}, "this terminal reports no commands: it runs no shell, or a shell without integration; wait for a pattern or idleMs instead"},
	} {
		got, isError := answer(t, session, c.tool, c.args)
		if got != c.want || !isError {
			t.Errorf("%s %.80v\ngot  %s (error %t)\nwant %s", c.tool, c.args, got, isError, c.want)
		}
	}
	if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "rm_rf", Arguments: m{}}); err == nil || !strings.Contains(err.Error(), `unknown tool "rm_rf"`) {
		t.Errorf("a tool that does not exist: %v", err)
	}
}

func TestToolsOffered(t *testing.T) {
	names := func(session *sdk.ClientSession) (all []string) {
		list := must.Get(session.ListTools(t.Context(), nil))(t)
		for _, tool := range list.Tools {
			all = append(all, tool.Name)
			schema, _ := json.Marshal(tool.InputSchema)
			if tool.Description == "" || tool.Title == "" || tool.Annotations == nil || !strings.Contains(string(schema), `"additionalProperties":false`) {
				t.Errorf("%s: %+v, schema %s", tool.Name, tool, schema)
			}
			if strings.Contains(string(schema), `"port"`) && !strings.Contains(tool.Description, "port") {
				t.Errorf("%s is not described", tool.Name)
			}
		}
		return all
	}
	f := &fakeTerminals{}
	want := []string{"kill_terminal", "list_terminals", "problems", "promote_terminal", "read_terminal", "signal_terminal", "spawn_background_terminal", "wait_terminal", "write_terminal"}
	if d := cmp.Diff(want, names(one(t, f))); d != "" {
		t.Errorf("tools of a controller (-want +got):\n%s", d)
	}
	reader := connect(t, newServer(t, mcp.Options{Tools: toolsOver(readOnly{f})}), nil)
	if d := cmp.Diff([]string{"list_terminals", "problems", "read_terminal", "wait_terminal"}, names(reader)); d != "" {
		t.Errorf("tools of a reader (-want +got):\n%s", d)
	}
	f.add("pty-a", agenttools.OwnerUser)
	if got, isError := answer(t, reader, "wait_terminal", m{"terminalId": "pty-a", "port": 80}); !isError || got != "port and url are not available here: the terminals run on another machine" {
		t.Errorf("a port of another machine: %q", got)
	}
}

// Titles and similar texts of programs are cleaned before a model gets them, and output
// is marked as untrusted.
func TestMetadataIsClean(t *testing.T) {
	f, x := withTerminal("pty-a")
	x.info.Title, x.info.Running, x.info.Cwd = "a\x1b[31m\u202eb\U000e0041", "ls\x07\n", "/tmp/\u200bx"
	x.print("hi")
	x.finish(vocab.Command{N: 1, Line: new("echo \x1b]0;x\x07\u2066")})
	session := one(t, f)
	r := must.Get(session.CallTool(t.Context(), &sdk.CallToolParams{Name: "list_terminals"}))(t)
	if r.Meta["tether/untrusted"] != true {
		t.Errorf("a list is not marked: %v", r.Meta)
	}
	var structured struct {
		Terminals []struct{ Title, Running, Cwd, Status string }
	}
	all, _ := json.Marshal(r.StructuredContent)
	must.Do(t, json.Unmarshal(all, &structured))
	want := struct{ Title, Running, Cwd, Status string }{"a[31mb", "", "/tmp/x", "running"}
	if len(structured.Terminals) != 1 || structured.Terminals[0] != want {
		t.Errorf("structured %s, want %+v", all, want)
	}
	if got := read(t, session, m{"terminalId": "pty-a"}); len(got.Commands) != 1 || got.Commands[0].Line != "echo ]0;x" {
		t.Errorf("commands %+v", got.Commands)
	}
}

// Two sessions of one server are the same principal. The terminals do not change when a
// session begins or ends.
func TestSessionsShareTerminals(t *testing.T) {
	f := &fakeTerminals{}
	s := newServer(t, mcp.Options{Tools: toolsOver(f)})
	a, b := connect(t, s, nil), connect(t, s, nil)
	answer(t, a, "spawn_background_terminal", m{"cwd": "/", "command": []string{"x"}})
	a.Close()
	if got, _ := answer(t, b, "kill_terminal", m{"terminalId": "pty-xyz789"}); !strings.Contains(got, "terminated") {
		t.Errorf("kill from another session: %s", got)
	}
	if f.List()[0].Exit == nil {
		t.Error("it was not killed")
	}
}

func TestKillThatTakesLong(t *testing.T) {
	f := &fakeTerminals{killing: time.Millisecond}
	f.add("pty-a", agenttools.OwnerAgent)
	if got, isError := answer(t, one(t, f), "kill_terminal", m{"terminalId": "pty-a"}); isError {
		t.Error(got)
	}
}
