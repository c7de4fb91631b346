package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/ports"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

const webURI = "ahp-terminal:/web"

// lender is a machine that lends a terminal with ports.
type lender struct {
	t    *testing.T
	conn *client.Conn
}

// lendPorts connects a machine that lends a terminal, for everybody, with these ports.
func lendPorts(t *testing.T, url, token string, handler http.HandlerFunc, ports ...int64) *lender {
	t.Helper()
	o := client.Options{ClientID: "laptop-id", Meta: ahp.ClientMarker{Ports: true}.Meta(), OnStream: serveStreams(t, handler)}
	l := &lender{t, must.Get(client.Connect(t.Context(), client.Endpoint{URL: url, Token: token}, o))(t)}
	t.Cleanup(func() { l.conn.Close() })
	l.create(webURI, "web", ports...)
	return l
}

// create announces a terminal with ports, for everybody.
func (l *lender) create(uri, name string, ports ...int64) {
	l.t.Helper()
	meta := ahp.AddAudience(ahp.AddPorts(ahp.NewTerminalMeta("", false), lent(ports...)), to("everyone"))
	must.Do(l.t, l.conn.CreateTerminal(l.t.Context(), ahp.CreateTerminalParams{Channel: uri, Name: name, Claim: ahp.ClientClaim("laptop-id"), ExecutionTarget: ahp.TargetClient, Meta: meta}))
}

func lent(ports ...int64) (all []ahp.LentPort) {
	for _, p := range ports {
		all = append(all, ahp.LentPort{Port: p})
	}
	return all
}

func (l *lender) call(method string, params any) {
	l.t.Helper()
	must.Do(l.t, l.conn.Peer().Call(l.t.Context(), method, params, nil))
}

// opens replaces the open ports.
func (l *lender) opens(ports ...ahp.LentPort) {
	l.t.Helper()
	l.call(ahp.MethodLentPorts, ahp.LentPortsParams{Channel: webURI, Ports: append([]ahp.LentPort{}, ports...)})
}

// audited collects what a host records.
type audited struct {
	mu  sync.Mutex
	all []rights.AuditEvent
}

func (a *audited) add(ev rights.AuditEvent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, ev)
}

// has reports whether a record of that type, principal and detail is there.
func (a *audited) has(kind, name, detail string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.all, func(ev rights.AuditEvent) bool {
		return ev.Type == kind && ev.Name == name && ev.Detail == detail && ev.Terminal == webURI
	})
}

// askLent asks a lent port for a path.
func askLent(t *testing.T, way http.RoundTripper, path string) (*http.Response, error) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x"+path, nil))(t)
	r.Header.Set(ahp.PortsCall, "fetch")
	r.Header.Set(ahp.PortsReader, `{"owner":true}`)
	r.Header.Set("Accept", "text/html")
	return way.RoundTrip(r)
}

// Who sees the terminal may ask its open ports, and nobody else: as every door has it.
func TestPortsAreForThoseWhoSeeTheTerminal(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "agent.helper.ann", "agent.ci.bob", "observer.screen.bob", "observer.other.cyd", "admin.root.cyd", "machine.tower.bob", "guest.web", "guest.another")
	var record audited
	h, url := serve(t, host.Options{Access: s, People: s, Audit: record.add})
	asked := make(chan *http.Request, 1)
	l := lendPorts(t, url, "machine.laptop.ann", func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		_, _ = io.WriteString(w, "page "+r.URL.RequestURI())
	}, 3000, 8080)
	l.call(ahp.MethodAudience, ahp.AudienceParams{Channel: webURI, Audience: to("agent:ci")})
	withPort := s.of["guest.web"]
	withPort.Name, withPort.GuestPort = "guest AbCdEfGh", 8080
	for name, c := range map[string]struct {
		p      rights.Principal
		reader string // what the machine is told; "" if it is not asked
		port   int
		err    error
	}{
		"the owner's agent":           {s.of["agent.helper.ann"], `{"names":["agent:helper","everyone"],"owner":true}`, 3000, nil},
		"somebody who may watch":      {s.of["agent.ci.bob"], `{"names":["agent:ci","everyone"]}`, 3000, nil},
		"somebody who may not":        {s.of["observer.screen.bob"], "", 3000, ports.ErrUnseen},
		"an administrator":            {s.of["admin.root.cyd"], "", 3000, ports.ErrUnseen},
		"another machine":             {s.of["machine.tower.bob"], "", 3000, ports.ErrUnseen},
		"the machine itself":          {s.of["machine.laptop.ann"], `{"names":["ann","everyone"],"owner":true}`, 3000, nil},
		"a port that is not lent":     {s.of["agent.helper.ann"], "", 3001, ports.ErrNotLent},
		"likewise, unseen":            {s.of["observer.other.cyd"], "", 3001, ports.ErrUnseen},
		"a guest":                     {s.of["guest.web"], "", 8080, ports.ErrUnseen},
		"a guest of a port":           {withPort, `{"guest":"AbCdEfGh"}`, 8080, nil},
		"a guest of another port":     {withPort, "", 3000, ports.ErrUnseen},
		"a guest of another terminal": {s.of["guest.another"], "", 8080, ports.ErrUnseen},
	} {
		way, err := h.Ports().Way(c.p, webURI, c.port)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
		if err != nil {
			continue
		}
		a := must.Get(askLent(t, way, "/a%2fb?c=d"))(t)
		if body := must.Get(io.ReadAll(a.Body))(t); string(body) != "page /a%2fb?c=d" {
			t.Errorf("%s gets %s", name, body)
		}
		a.Body.Close()
		r := <-asked
		got := fmt.Sprint(r.Header[ahp.PortsTerminal], r.Header[ahp.PortsPort], r.Header[ahp.PortsCall], r.Header["Accept"], r.Host)
		want := fmt.Sprintf("[%s] [%d] [] [text/html]localhost:%d", webURI, c.port, c.port)
		if got != want || r.Header.Get(ahp.PortsReader) != c.reader {
			t.Errorf("%s: the machine is told %s and %s, want %s and %s", name, got, r.Header.Get(ahp.PortsReader), want, c.reader)
		}
	}
	if _, err := h.Ports().Way(s.of["agent.helper.ann"], "ahp-terminal:/none", 3000); !errors.Is(err, ports.ErrUnseen) {
		t.Errorf("a terminal that does not exist: %v", err)
	}
	if ports := h.Lent()[0].Ports; fmt.Sprint(ports) != "[{{3000 false} 0 3} {{8080 false} 0 1}]" {
		t.Errorf("listed as %+v", ports)
	}
	l.opens(ahp.LentPort{Port: 8080, Write: true}, ahp.LentPort{Port: 8081, GuestsOnly: true})
	if ports := h.Lent()[0].Ports; len(ports) != 1 {
		t.Errorf("a port for guests alone is listed: %+v", ports)
	}
	testkit.Eventually(t, patience, "it is recorded", func() bool {
		return record.has(rights.AuditPort, "laptop", "port 8081 is open for reading to guests with a link for it") && record.has(rights.AuditPort, "laptop", "port 3000 is closed, after 3 requests") && record.has(rights.AuditPort, "laptop", "port 8080 is open for reading and writing to ann, agent:ci")
	})
	if !record.has(rights.AuditPort, "ci", "port 3000 is asked") {
		t.Errorf("who asked is not in the record: %+v", record.all)
	}
	if !record.has(rights.AuditPort, "laptop", "port 3000 is open for reading to ann, everyone") {
		t.Errorf("the record is %+v", record.all)
	}
}

// Whatever ends the right to a port ends an answer under way within a second, with the
// reason.
func TestPortsEndWithTheRight(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(s *staff, h *host.Host, l *lender)
		want error
	}{
		"the token is revoked": {func(s *staff, _ *host.Host, _ *lender) { s.ends["agent.ci.bob"](errors.New("revoked")) }, ports.ErrUnseen},
		"the grant ends": {func(_ *staff, _ *host.Host, l *lender) {
			l.call(ahp.MethodAudience, ahp.AudienceParams{Channel: webURI})
		}, ports.ErrUnseen},
		"an administrator ends it": {func(_ *staff, h *host.Host, _ *lender) { h.Terminals().EndGrant(host.IDOf(webURI), "everyone") }, ports.ErrUnseen},
		"the port is closed":       {func(_ *staff, _ *host.Host, l *lender) { l.opens(lent(8080)...) }, ports.ErrNotLent},
		"it is for guests alone":   {func(_ *staff, _ *host.Host, l *lender) { l.opens(ahp.LentPort{Port: 3000, GuestsOnly: true}) }, ports.ErrNotLent},
		"the program has exited":   {func(_ *staff, _ *host.Host, l *lender) { l.exit() }, ports.ErrNotLent},
		"the terminal is withdrawn": {func(_ *staff, _ *host.Host, l *lender) {
			l.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: webURI})
		}, nil},
		"the machine's connection": {func(_ *staff, _ *host.Host, l *lender) { l.conn.Close() }, nil},
		"the host goes away":       {func(_ *staff, h *host.Host, _ *lender) { go h.Close() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaff(true, "machine.laptop.ann", "agent.ci.bob")
			h, url := serve(t, host.Options{Access: s, People: s})
			l := lendPorts(t, url, "machine.laptop.ann", download, 3000)
			way := must.Get(h.Ports().Way(s.of["agent.ci.bob"], webURI, 3000))(t)
			a := must.Get(askLent(t, way, "/"))(t)
			defer a.Body.Close()
			must.Get(io.ReadFull(a.Body, make([]byte, 100<<10)))(t)
			ended := make(chan error, 1)
			go func() { _, err := io.Copy(io.Discard, a.Body); ended <- err }()
			c.end(s, h, l)
			began := time.Now()
			select {
			case err := <-ended:
				if err == nil || c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("it ended with %v, want %v", err, c.want)
				}
			case <-time.After(patience):
				t.Error("it has not ended")
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it ended after %v", took)
			}
			if again, err := askLent(t, way, "/"); err == nil {
				again.Body.Close()
				t.Error("it answers again")
			}
		})
	}
}

// download is a dev server whose answer has no end.
func download(w http.ResponseWriter, r *http.Request) {
	for piece := make([]byte, 16<<10); r.Context().Err() == nil; {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

func (l *lender) exit() {
	l.t.Helper()
	must.Get(l.conn.Dispatch(l.t.Context(), webURI, ahp.TerminalExited{ExitCode: new(int64)}))(l.t)
}

// One port has only some requests under way: further ones wait, and go when one ends.
func TestManyRequestsForAPort(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "agent.helper.ann")
	h, url := serve(t, host.Options{Access: s, People: s})
	open := make(chan struct{})
	began := make(chan struct{}, 100)
	lendPorts(t, url, "machine.laptop.ann", func(_ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		select {
		case <-open:
		case <-r.Context().Done():
		}
	}, 3000)
	way := must.Get(h.Ports().Way(s.of["agent.helper.ann"], webURI, 3000))(t)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			a, err := askLent(t, way, "/")
			if err != nil {
				t.Error(err)
				return
			}
			a.Body.Close()
		})
	}
	for range 64 {
		<-began
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := way.RoundTrip(must.Get(http.NewRequestWithContext(short, http.MethodGet, "http://x/", nil))(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one more: %v", err)
	}
	if len(began) > 0 {
		t.Error("one more has reached the machine")
	}
	close(open)
	all.Wait()
	a := must.Get(askLent(t, way, "/"))(t)
	a.Body.Close()
}

// fetches is a machine that answers calls of fetch_page, and records them.
func fetches(answer func(port string, p ahp.FetchParams) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var p ahp.FetchParams
		if r.Header.Get(ahp.PortsCall) != ahp.CallFetch || r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&p) != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_ = json.NewEncoder(w).Encode(answer(r.Header.Get(ahp.PortsPort), p))
	}
}

const fetched = `{"terminalId":"pty-theirs","url":"http://localhost:3000/boom","status":500,"statusText":"Internal Server Error","headers":{"Content-Type":"text/html"},"body":"<h1>boom</h1>","bodyBytes":13,"firstByteMs":3,"tookMs":4,"printed":{"since":7,"cursor":90,"text":"Error: boom\n    at page.ts:3","problems":[{"tool":"node","file":"page.ts","line":3,"severity":"error","message":"boom","first":0,"last":0,"count":1}]}}`

// An agent at the host fetches a page of a lent port, with what the server printed. The
// list says which ports it may ask, and the record that it did.
func TestFetchPageAtTheHost(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "agent.ci.bob")
	var record audited
	_, url := serve(t, host.Options{Access: s, People: s, Audit: record.add})
	asked := make(chan string, 1)
	l := lendPorts(t, url, "machine.laptop.ann", fetches(func(port string, p ahp.FetchParams) any {
		asked <- fmt.Sprint(port, " ", string(p.Arguments), " ", p.Shows)
		if strings.Contains(string(p.Arguments), "logo") {
			return ahp.FetchResult{Answer: []byte(`{"url":"http://localhost:3000/logo.png","status":200,"body":"","bodyBytes":4,"sha256":"ab"}`), Blob: &ahp.FetchBlob{Type: "image/png", Data: []byte("\x89PNG")}}
		}
		return ahp.FetchResult{Answer: []byte(fetched)}
	}), 3000)
	agent := must.Get(overHTTP(t, url, "agent.ci.bob", nil))(t)
	list, _ := tryTool(t, agent, "list_terminals", `{}`)
	if !strings.Contains(list, `"lentPorts":[{"port":3000}]`) {
		t.Errorf("the list says %s", list)
	}
	id := host.IDOf(webURI)
	got, failed := tryTool(t, agent, "fetch_page", `{"terminalId":"laptop/web","path":"/boom","format":"readable"}`)
	if want := strings.Replace(fetched, "pty-theirs", id, 1); failed || got != want {
		t.Errorf("the page is %s, want %s", got, want)
	}
	if got, want := <-asked, `3000 {"terminalId":"`+id+`","path":"/boom","format":"readable"} 16000`; got != want {
		t.Errorf("the machine was asked %s, want %s", got, want)
	}
	r := must.Get(agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "fetch_page", Arguments: map[string]any{"terminalId": id, "port": 3000, "path": "/logo.png"}}))(t)
	<-asked
	if image, ok := r.Content[1].(*mcp.ImageContent); !ok || image.MIMEType != "image/png" || string(image.Data) != "\x89PNG" {
		t.Errorf("the image is %+v", r.Content)
	}
	if !record.has(rights.AuditCalled, "ci", "fetch_page, port 3000") {
		t.Errorf("the record is %+v", record.all)
	}
	// The token is revoked while the machine answers.
	waits := make(chan struct{})
	l.conn.Close()
	lendPorts(t, url, "machine.laptop.ann", func(_ http.ResponseWriter, r *http.Request) { close(waits); <-r.Context().Done() }, 3000)
	ended := make(chan error, 1)
	go func() {
		_, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "fetch_page", Arguments: map[string]any{"terminalId": id}})
		ended <- err
	}()
	<-waits
	s.ends["agent.ci.bob"](errors.New("revoked"))
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the call goes on after the token was revoked")
	}
}

// An agent that cannot have a page is told what to do.
func TestFetchPageSaysWhatToDo(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "machine.old.ann", "agent.ci.bob", "agent.other.cyd")
	_, url := serve(t, host.Options{Access: s, People: s})
	var mu sync.Mutex
	var answer any
	l := lendPorts(t, url, "machine.laptop.ann", fetches(func(string, ahp.FetchParams) any {
		mu.Lock()
		defer mu.Unlock()
		return answer
	}))
	old := as(t, url, "machine.old.ann", "old", viewOptions{resume: true})
	old.create("ahp-terminal:/old")
	must.Do(t, old.audience("ahp-terminal:/old", to("everyone")))
	agent, other := must.Get(overHTTP(t, url, "agent.ci.bob", nil))(t), must.Get(overHTTP(t, url, "agent.other.cyd", nil))(t)
	says := func(args, want string) {
		t.Helper()
		if text, failed := tryTool(t, agent, "fetch_page", args); !failed || text != want {
			t.Errorf("%s: %q, want %q", args, text, want)
		}
	}
	says(`{"terminalId":"laptop/web"}`, "no port of laptop/web is lent: ask the person for it; on laptop they say: tether lend web --port PORT")
	says(`{"terminalId":"laptop/web","port":3000}`, "port 3000 of laptop/web is not lent: ask the person for it; on laptop they say: tether lend web --port 3000")
	says(`{"terminalId":"laptop/web","port":80}`, "port 80 is out of range, it must be 1024 to 65535")
	says(`{"terminalId":"`+host.IDOf("ahp-terminal:/old")+`"}`, "tether on old is too old to lend ports: ask the person to update it")
	l.create("ahp-terminal:/odd", "npm run; x")
	says(`{"terminalId":"laptop/npm run; x","port":3000}`, "port 3000 of laptop/npm run; x is not lent: ask the person for it; on laptop they say: tether lend 'npm run; x' --port 3000")
	l.opens(lent(3000, 8080)...)
	says(`{"terminalId":"laptop/web"}`, "laptop/web has the lent ports 3000, 8080; choose one with port")
	says(`{"terminalId":"laptop/web","port":3001}`, "port 3001 of laptop/web is not lent, only 3000, 8080: ask the person for it; on laptop they say: tether lend web --port 3001")
	for name, c := range map[string]struct {
		answer any
		want   string
	}{
		"refused":         {ahp.FetchResult{Error: "method \"POST\"\x1b[2J: only GET"}, `method "POST"[2J: only GET`},
		"garbage":         {"x", "the machine gave no usable answer"},
		"nothing":         {ahp.FetchResult{}, "the machine gave no usable answer"},
		"wrong types":     {ahp.FetchResult{Answer: []byte(`{"status":"x"}`)}, "the machine gave no usable answer"},
		"negative number": {ahp.FetchResult{Answer: []byte(`{"status":200,"bodyBytes":-1}`)}, "the machine gave no usable answer"},
		"a long header":   {ahp.FetchResult{Answer: []byte(`{"status":200,"headers":{"A":"` + strings.Repeat("x", 5000) + `"}}`)}, "the machine gave no usable answer"},
		"a long body":     {ahp.FetchResult{Answer: []byte(`{"status":200,"body":"` + strings.Repeat("x", 1<<20+1) + `"}`)}, "the machine gave no usable answer"},
		"too much":        {strings.Repeat("x", ahp.MaxFetchResult), "the machine gave no usable answer"},
	} {
		mu.Lock()
		answer = c.answer
		mu.Unlock()
		if text, failed := tryTool(t, agent, "fetch_page", `{"terminalId":"laptop/web","port":3000}`); !failed || text != c.want {
			t.Errorf("%s: %.300q, want %q", name, text, c.want)
		}
	}
	l.call(ahp.MethodAudience, ahp.AudienceParams{Channel: webURI, Audience: to("agent:ci")})
	if text, failed := tryTool(t, other, "fetch_page", `{"terminalId":"laptop/web"}`); !failed || text != `Terminal not found: "laptop/web"; list_terminals lists them` {
		t.Errorf("somebody who does not see it: %q", text)
	}
	l.exit()
	testkit.Eventually(t, patience, "an exited terminal is said to be one", func() bool {
		text, _ := tryTool(t, agent, "fetch_page", `{"terminalId":"laptop/web"}`)
		return strings.HasSuffix(text, "has exited; read_terminal shows what it printed")
	})
	l.conn.Close()
	old.close()
	testkit.Eventually(t, patience, "the machine is away", func() bool {
		text, _ := tryTool(t, agent, "fetch_page", `{"terminalId":"`+host.IDOf("ahp-terminal:/old")+`"}`)
		return text == "the machine is away: old can be asked when it is back"
	})
}
