package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/jsonrpc/wsconn"
)

// Machines that create and dispose in loops, lie about offsets and name each other's ids,
// with agents, pages and observers looking at all of it at once: nobody gets in anybody's
// way, and nothing is left.
func TestBadInputFromManyAtOnce(t *testing.T) {
	testkit.Leaks(t)
	const machines, loops = 6, 40
	tokens := []string{"observer-o", "agent-b"}
	for i := range machines {
		tokens = append(tokens, fmt.Sprint("machine-m", i))
	}
	h, url := serve(t, host.Options{Access: newUsers(tokens...), MaxTerminals: 4})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	looking, enough := context.WithCancel(ctx)
	var work, lookers sync.WaitGroup
	for i := range machines {
		work.Go(func() {
			c, err := client.Connect(ctx, client.Endpoint{URL: url, Token: fmt.Sprint("machine-m", i)}, client.Options{ClientID: fmt.Sprint("m", i), Meta: ahp.NewClientMeta()})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			misbehave(ctx, t, c, i, loops)
		})
		work.Go(func() { // a client that uses a machine's id
			c, err := client.Connect(ctx, client.Endpoint{URL: url, Token: "observer-o"}, client.Options{ClientID: fmt.Sprint("m", i)})
			if err == nil {
				c.Close() // it came before the machine, which still gets the id
			}
		})
	}
	lookers.Go(func() { lookOn(looking, t, url) })
	lookers.Go(func() {
		for looking.Err() == nil {
			ctx, cancel := context.WithTimeout(looking, 50*time.Millisecond)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(url, "ws")+"/events", nil)
			if err == nil {
				r.Header.Set("Authorization", "Bearer observer-o")
				if answer, err := http.DefaultClient.Do(r); err == nil {
					answer.Body.Close()
				}
			}
			cancel()
		}
	})
	work.Wait()
	enough()
	lookers.Wait()
	if n := h.Count(); n != 0 {
		t.Errorf("%d terminals are left", n)
	}
	http.DefaultClient.CloseIdleConnections()
}

// Garbage from many connections at once ends those that sent too long messages, is
// answered to the others, and disturbs nobody else.
func TestGarbageFromManyAtOnce(t *testing.T) {
	testkit.Leaks(t)
	h, url := serve(t, host.Options{MaxFrame: 64 << 10})
	owner := dial(t, url, "laptop", viewOptions{resume: true})
	owner.create(uri)
	watcher := dial(t, url, "watcher", viewOptions{subs: []string{uri}})
	hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersions":["1.0.0"],"clientId":"bad-%d"}}`
	dispatch := func(action string) string {
		return `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"` + uri + `","clientSeq":1,"action":` + action + `}}`
	}
	frames := []string{
		"", "hello", "\xff\xfe{", "null", "[]", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"channel":` + strings.Repeat("9", 30_000) + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"createTerminal","params":{"channel":"` + uri + `","executionTarget":"client","claim":{"kind":"client","clientId":"laptop"}}}`,
		dispatch(`{"type":"terminal/output","data":"garbage"}`), dispatch(`{"type":"terminal/data","data":"garbage"}`), dispatch(`{"type":"terminal/output","data":5}`),
		dispatch(`{"type":"terminal/resized","cols":0,"rows":-1}`), dispatch(`{"type":"terminal/resized","cols":70000,"rows":70000}`),
		dispatch(`{"type":"terminal/exited","exitCode":1e300}`), dispatch(`{"type":"terminal/cleared"}`), dispatch(`7`),
	}
	const many = 30
	var all sync.WaitGroup
	for n := range many {
		all.Go(func() {
			ch, err := wsconn.Dial(t.Context(), url, wsconn.Options{ReadLimit: 1 << 20})
			if err != nil {
				t.Error(err)
				return
			}
			defer ch.Close()
			said := make(chan error, 1)
			go func() {
				for {
					msg, err := ch.Recv(t.Context())
					if err != nil || strings.Contains(string(msg), `"id":"last"`) {
						said <- err
						return
					}
				}
			}()
			first := []string{fmt.Sprintf(hello, n), fmt.Sprintf(hello, n), "garbage before the handshake"}[n%3]
			for _, frame := range append([]string{first}, frames...) {
				if err := ch.Send(t.Context(), []byte(frame)); err != nil {
					t.Errorf("client %d: after some garbage it is not heard any more: %v", n, err)
					return
				}
			}
			last := `{"jsonrpc":"2.0","id":"last","method":"ping"}`
			tooLong := n%5 == 0
			if tooLong {
				last = `{"jsonrpc":"2.0","id":"last","method":"ping","params":"` + strings.Repeat("x", 100<<10) + `"}`
			}
			_ = ch.Send(t.Context(), []byte(last)) // the result arrives as an answer
			err = <-said
			closed, ok := errors.AsType[*wsconn.CloseError](err)
			reset := ok && closed.Code == wsconn.CloseAbnormal // the system may let that overtake the reason, while so much is on its way
			if tooLong != (err != nil) || ok && !reset && closed.Code != wsconn.CloseTooBig {
				t.Errorf("client %d, which has sent what is too long: %v, is told in the end %v", n, tooLong, err)
			}
		})
	}
	want := ""
	for n := range 50 {
		line := fmt.Sprintf("line %d\r\n", n)
		owner.output(uri, line, int64(len(want)))
		want += line
	}
	all.Wait()
	owner.output(uri, "the end", int64(len(want)))
	watcher.awaitText(uri, "the end")
	if st := watcher.state(uri); st.Text() != want+"the end" || st.Cols != 80 || st.Lifecycle.Exited() || h.Count() != 1 {
		t.Errorf("afterwards there are %d terminals; the one has %q, %d columns, %+v", h.Count(), st.Text(), st.Cols, st.Lifecycle)
	}
}

// misbehave makes terminals and takes them away again.
func misbehave(ctx context.Context, t *testing.T, c *client.Conn, me, loops int) {
	for n := range loops {
		uri := fmt.Sprintf("ahp-terminal:/m%d-%d", me, n%3)
		cols, rows := int64(80), int64(24)
		p := ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim(fmt.Sprint("m", me)), Name: "a\x1b]0;b\a\u202ec\x00/../d",
			Cols: &cols, Rows: &rows, ExecutionTarget: ahp.TargetClient}
		if err := c.CreateTerminal(ctx, p); err != nil {
			t.Errorf("create: %v", err)
			return
		}
		other := p
		other.Channel, other.Claim = fmt.Sprintf("ahp-terminal:/m%d-0", (me+1)%6), ahp.ClientClaim(fmt.Sprint("m", (me+1)%6))
		if err := c.CreateTerminal(ctx, other); code(err) == 0 {
			t.Errorf("a claim for another machine was accepted")
		}
		far := int64(1) << 52
		back := int64(-5)
		for _, a := range []ahp.Action{ahp.TerminalOutput{Data: "x"}, ahp.TerminalOutput{Data: "y", Offset: &far}, ahp.TerminalOutput{Data: "z", Offset: &back},
			ahp.TerminalCommandFinished{CommandID: "none"}, ahp.TerminalResized{Cols: 1, Rows: 1}, ahp.TerminalTitleChanged{Title: strings.Repeat("\u202e", 100)}} {
			if _, err := c.Dispatch(ctx, uri, a); err != nil {
				t.Errorf("dispatch: %v", err)
				return
			}
		}
		if err := c.DisposeTerminal(ctx, uri); err != nil {
			t.Errorf("dispose: %v", err)
			return
		}
	}
}

// lookOn reads and waits as an agent does, while terminals come and go.
func lookOn(ctx context.Context, t *testing.T, url string) {
	agent := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := agent.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: "http" + strings.TrimPrefix(url, "ws") + "/mcp",
		HTTPClient: &http.Client{Transport: testkit.Bearer("agent-b")}, MaxRetries: -1}, nil)
	if err != nil {
		if ctx.Err() == nil {
			t.Error(err)
		}
		return
	}
	defer session.Close()
	for ctx.Err() == nil {
		resources, err := session.ListResources(ctx, nil)
		if err != nil {
			continue
		}
		for _, r := range resources.Resources {
			args := map[string]any{"terminalId": r.Name, "pattern": "never", "timeoutMs": 20}
			_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "wait_terminal", Arguments: args}) // it may be gone
			_, _ = session.CallTool(ctx, &sdk.CallToolParams{Name: "read_terminal", Arguments: map[string]any{"terminalId": r.Name}})
			if strings.ContainsAny(r.Title, "\x1b\u202e\x00") {
				t.Errorf("a title is shown as %q", r.Title)
			}
		}
	}
}
