package mcp_test

import (
	"context"
	"encoding/json"
	"net"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/mcp"
)

// patience is how long a test waits for an expected event.
const patience = testkit.Patience

// toolsOver returns the tools for these terminals.
func toolsOver(terminals agenttools.Terminals) *agenttools.Set {
	return agenttools.New(agenttools.Options{Terminals: terminals})
}

// newServer returns a server that ends with the test.
func newServer(t *testing.T, o mcp.Options) *mcp.Server {
	t.Helper()
	s := mcp.New(o)
	t.Cleanup(s.Close)
	return s
}

// connect opens a session over a pipe with the SDK's own client.
func connect(t *testing.T, s *mcp.Server, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	session, _ := dial(t, s, o)
	return session
}

// dial is connect that also returns the client's end of the pipe.
func dial(t *testing.T, s *mcp.Server, o *sdk.ClientOptions) (*sdk.ClientSession, net.Conn) {
	t.Helper()
	return connectAs(t, s, sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o))
}

// connectAs is dial with a client.
func connectAs(t *testing.T, s *mcp.Server, c *sdk.Client) (*sdk.ClientSession, net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), there) }()
	session := must.Get(c.Connect(t.Context(), &sdk.IOTransport{Reader: here, Writer: here}, &sdk.ClientSessionOptions{ProtocolVersion: version}))(t)
	t.Cleanup(func() {
		here.Close()
		session.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return session, here
}

// one makes a server with the terminals of f and returns a session of it.
func one(t *testing.T, f *fakeTerminals) *sdk.ClientSession {
	t.Helper()
	return connect(t, newServer(t, mcp.Options{Tools: agenttools.New(agenttools.Options{Terminals: f, Loopback: true})}), nil)
}

// version is the protocol's version in sessions over a pipe, unless a test sets another.
const version = "2025-11-25"

// answer calls a tool and returns the text of its answer.
func answer(t *testing.T, session *sdk.ClientSession, tool string, args any) (text string, isError bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	if len(r.Content) != 1 {
		t.Fatalf("%s %v: %d contents", tool, args, len(r.Content))
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// read calls read_terminal.
func read(t *testing.T, session *sdk.ClientSession, args map[string]any) (r readAnswer) {
	t.Helper()
	decodeAnswer(t, session, "read_terminal", args, &r)
	return r
}

// readAnswer is the answer of read_terminal and wait_terminal.
type readAnswer struct {
	TerminalID string
	History    string
	Cursor     int64
	Truncated  bool
	Hint       string
	More       bool
	Exited     bool
	ExitCode   *int
	Signal     string
	Reason     string
	ExitReason string
	Line       string
	Address    string
	Listener   string
	Status     int
	Detail     string
	Command    *shownCommand
	Commands   []shownCommand
	Screen     *struct{ Cols, Rows, CursorCol, CursorRow int }
}

// shownCommand is a command in the words of the tools.
type shownCommand struct {
	N, Within              int
	Line                   string
	ExitCode               *int
	Running, Verified      bool
	DurationMs, Start, End int64
}

func decodeAnswer(t *testing.T, session *sdk.ClientSession, tool string, args map[string]any, into any) {
	t.Helper()
	text, isError := answer(t, session, tool, args)
	if isError {
		t.Fatalf("%s %v: %s", tool, args, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s %v: %v in %s", tool, args, err, text)
	}
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testkit.Eventually(t, patience, what, ok)
}

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
