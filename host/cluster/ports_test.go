package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/ports"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// portMachine is a machine that lends a terminal with the port 3000.
type portMachine struct {
	t       *testing.T
	handler http.HandlerFunc
	conn    *client.Conn
}

// lend connects to a node, and announces the terminal there.
func (m *portMachine) lend(n *node) {
	m.t.Helper()
	if m.conn != nil {
		m.conn.Close()
	}
	o := client.Options{ClientID: "workshop", Meta: ahp.ClientMarker{Ports: true}.Meta(), OnStream: testkit.ServeStreams(m.t, m.handler)}
	m.conn = must.Get(client.Connect(m.t.Context(), client.Endpoint{URL: n.url, Token: own}, o))(m.t)
	m.t.Cleanup(func() { m.conn.Close() })
	must.Do(m.t, m.conn.CreateTerminal(m.t.Context(), ahp.CreateTerminalParams{Channel: lent, Name: "web", Claim: ahp.ClientClaim("workshop"), ExecutionTarget: ahp.TargetClient,
		Meta: ahp.AddPorts(ahp.NewTerminalMeta("", false), []ahp.LentPort{{Port: 3000}})}))
}

// devServer answers with pages, a download, one without an end, calls of fetch_page, and
// echoes what a connection that was upgraded sends.
func devServer(w http.ResponseWriter, r *http.Request) {
	piece := []byte(strings.Repeat("0123456789abcdef", 1<<10))
	switch {
	case r.Header.Get(ahp.PortsCall) == ahp.CallFetch:
		_ = json.NewEncoder(w).Encode(ahp.FetchResult{Answer: []byte(`{"url":"http://localhost:3000/","status":500,"body":"boom","bodyBytes":4}`)})
	case r.Header.Get(ahp.PortsUpgrade) != "":
		w.Header().Set(ahp.PortsUpgrade, "websocket")
		w.WriteHeader(http.StatusOK)
		for buf := make([]byte, 1<<10); ; {
			_ = http.NewResponseController(w).Flush()
			n, err := r.Body.Read(buf)
			if _, failed := w.Write(buf[:n]); err != nil || failed != nil {
				return
			}
		}
	case r.URL.Path == "/download":
		for range 64 { // 1 MiB
			_, _ = w.Write(piece)
		}
	case r.URL.Path == "/endless":
		for r.Context().Err() == nil {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	default:
		_, _ = fmt.Fprint(w, "page ", r.URL.RequestURI(), " ", r.Host, " ", r.Header.Get(ahp.PortsReader))
	}
}

// askAt asks the port at a node.
func askAt(t *testing.T, n *node, path string, change func(*http.Request)) (*http.Response, error) {
	t.Helper()
	way, err := n.Ports().Way(rights.Principal{}, lent, 3000)
	if err != nil {
		return nil, err
	}
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+path, nil))(t)
	if change != nil {
		change(r)
	}
	return way.RoundTrip(r)
}

// awaitPage waits until a page comes at a node.
func awaitPage(t *testing.T, n *node, what string) {
	t.Helper()
	testkit.Eventually(t, patience, what, func() bool {
		a, err := askAt(t, n, "/", nil)
		if err != nil {
			return false
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		return a.Header.Get(ahp.PortsError) == "" && strings.HasPrefix(string(text), "page ")
	})
}

// A port is asked at each node alike: pages, long answers, connections that change their
// protocol, and an agent's fetch_page. The requests are counted once.
func TestPortsAtOtherNodes(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := start(t, servers.URLs, host.Options{}), start(t, servers.URLs, host.Options{})
	m := &portMachine{t: t, handler: devServer}
	m.lend(a)
	awaitPage(t, b, "a page comes at the other node")
	before := a.Lent()[0].Ports[0].Fetched
	answer := must.Get(askAt(t, b, "/a%2Fb?c=d", nil))(t)
	text := must.Get(io.ReadAll(answer.Body))(t)
	if want := `page /a%2Fb?c=d localhost:3000 {"names":["everyone"],"owner":true}`; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
	answer.Body.Close()
	answer = must.Get(askAt(t, b, "/download", nil))(t)
	if n, err := io.Copy(io.Discard, answer.Body); n != 1<<20 || err != nil {
		t.Errorf("a download has %d bytes, %v", n, err)
	}
	answer.Body.Close()
	body, up := io.Pipe()
	answer = must.Get(askAt(t, b, "/", func(r *http.Request) { r.Header.Set(ahp.PortsUpgrade, "websocket"); r.Body = body }))(t)
	for _, said := range []string{"one", "another"} {
		must.Get(io.WriteString(up, said))(t)
		heard := make([]byte, len(said))
		must.Get(io.ReadFull(answer.Body, heard))(t)
		if string(heard) != said {
			t.Errorf("%s came back as %s", said, heard)
		}
	}
	up.Close()
	answer.Body.Close()
	r := must.Get(newAgent(t, b).session.CallTool(t.Context(), &sdk.CallToolParams{Name: "fetch_page", Arguments: map[string]any{"terminalId": "workshop/web"}}))(t)
	if got := r.Content[0].(*sdk.TextContent).Text; r.IsError || !strings.Contains(got, `"status":500`) {
		t.Errorf("fetch_page at the other node: %s", got)
	}
	if n := a.Lent()[0].Ports[0].Fetched - before; n != 4 {
		t.Errorf("%d requests are counted, want 4", n)
	}
	testkit.Eventually(t, patience, "the other node shows the count", func() bool { return b.Lent()[0].Ports[0].Fetched == before+4 })
	must.Do(t, m.conn.Peer().Call(t.Context(), ahp.MethodLentPorts, ahp.LentPortsParams{Channel: lent, Ports: []ahp.LentPort{}}, nil))
	testkit.Eventually(t, patience, "the port is closed at the other node", func() bool {
		_, err := askAt(t, b, "/", nil)
		return errors.Is(err, ports.ErrNotLent)
	})
}

// A machine that moves in the middle of an answer ends that; then its port is asked at
// the node where it is, from wherever somebody is. A node that is killed ends answers.
func TestPortsOfMovingMachinesAndKilledNodes(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b, c := start(t, servers.URLs, host.Options{}), start(t, servers.URLs, host.Options{}), start(t, servers.URLs, host.Options{})
	m := &portMachine{t: t, handler: devServer}
	m.lend(a)
	cut := func(n *node, do func()) {
		t.Helper()
		awaitPage(t, n, "a page comes before")
		answer := must.Get(askAt(t, n, "/endless", nil))(t)
		defer answer.Body.Close()
		must.Get(io.ReadFull(answer.Body, make([]byte, 1<<20)))(t)
		ended := make(chan error, 1)
		go func() { _, err := io.Copy(io.Discard, answer.Body); ended <- err }()
		do()
		select {
		case err := <-ended:
			if err == nil {
				t.Error("an answer without an end has ended well")
			}
		case <-time.After(patience):
			t.Error("the answer goes on")
		}
	}
	cut(b, func() { m.lend(c) })
	awaitPage(t, b, "a page comes from the other node")
	awaitPage(t, a, "likewise where it was before")
	cut(b, func() { c.of.Kill() })
	m.lend(a)
	awaitPage(t, b, "a page comes again")
	awaitPage(t, a, "likewise at the machine's node")
}
