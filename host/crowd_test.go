package host_test

import (
	"context"
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
)

// Machines that create and dispose in loops, lie about offsets and name each other's ids, with agents, pages and observers looking at all
// of it at once: nobody gets in anybody's way, and nothing is left.
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
		work.Go(func() { // somebody who names a machine's id
			c, err := client.Connect(ctx, client.Endpoint{URL: url, Token: "observer-o"}, client.Options{ClientID: fmt.Sprint("m", i)})
			if err == nil {
				c.Close() // it came before the machine, which has the id all the same
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

// lookOn reads and waits as an agent does, whatever comes and goes.
func lookOn(ctx context.Context, t *testing.T, url string) {
	agent := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := agent.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: "http" + strings.TrimPrefix(url, "ws") + "/mcp",
		HTTPClient: &http.Client{Transport: bearer{"agent-b"}}, MaxRetries: -1}, nil)
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
