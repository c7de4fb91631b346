package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/preview"
	"tether/host/rights"
	"tether/host/web"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// browser is Chromium, driven through testdata/browser.mjs.
type browser struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	end func() error
}

// spare is the browser of the test before, with nothing of it: to start one takes a
// second of the processor.
var spare *browser

func TestMain(m *testing.M) {
	code := m.Run()
	if spare != nil {
		if err := spare.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// newBrowser returns one for the test alone, or skips the test if none is installed. Its
// answers may take as long as the operation does.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	b := spare
	if spare = nil; b == nil {
		b = startBrowser(t)
	}
	b.t = t
	t.Cleanup(func() {
		if !t.Failed() {
			b.do("leave", nil, nil)
			spare = b
		} else if err := b.end(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	if os.Getenv("TETHER_SCREENSHOTS") == "" {
		t.Skip("make test-web runs it; a browser takes long")
	}
	if !web.Complete() {
		t.Skip("the page is not complete: make web adds xterm.js")
	}
	modules := must.Get(filepath.Abs("../../bin/tools/web"))(t)
	if _, err := os.Stat(filepath.Join(modules, "node_modules", "playwright-core")); err != nil {
		t.Skip("no Playwright; make web installs it where it can")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no Node")
	}
	program := chromium(t)
	c := exec.Command(node, "testdata/browser.mjs", modules, program)
	in := must.Get(c.StdinPipe())(t)
	out := must.Get(c.StdoutPipe())(t)
	var said bytes.Buffer
	c.Stderr = &said
	all := &outliving{TB: t}
	testkit.StartTree(all, c)
	return &browser{in: in, out: bufio.NewReader(out), end: func() error {
		in.Close()
		stuck := time.AfterFunc(testkit.Patience, func() { _ = c.Process.Kill() })
		defer stuck.Stop()
		if err := c.Wait(); err != nil {
			all.Errorf("the browser: %v: %s", err, said.String())
		}
		for _, end := range all.ends {
			end()
		}
		return all.err
	}}
}

// outliving is the test that starts what later tests use, too.
type outliving struct {
	testing.TB
	ends []func()
	err  error
}

func (o *outliving) Cleanup(end func()) { o.ends = append(o.ends, end) }

func (o *outliving) Errorf(format string, a ...any) {
	o.err = errors.Join(o.err, fmt.Errorf(format, a...))
}

// chromium is a browser's program. The test is skipped if none is installed.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium; scripts/test-tools.sh installs it where it can")
	return ""
}

// args are the arguments of an operation.
type args map[string]any

// do does one operation and decodes its result into into, unless that is nil.
func (b *browser) do(op string, a args, into any) {
	b.t.Helper()
	if a == nil {
		a = args{}
	}
	a["op"] = op
	line, err := json.Marshal(a)
	if err == nil {
		_, err = b.in.Write(append(line, '\n'))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", op, err)
	}
	answer, err := b.out.ReadBytes('\n')
	if err != nil {
		b.t.Fatalf("%s: the browser is gone: %v", op, err)
	}
	var got struct {
		Value json.RawMessage
		Error string
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		b.t.Fatalf("%s: %v in %s", op, err, answer)
	}
	if got.Error != "" {
		var text string
		if op == "wait" {
			b.do("eval", args{"js": "document.querySelector('#notice')?.textContent + ' | ' + document.body.innerText.slice(0, 1500)"}, &text)
		}
		b.t.Fatalf("%s %v: %s\nthe page says %s", op, a, got.Error, text)
	}
	if into != nil {
		if err := json.Unmarshal(got.Value, into); err != nil {
			b.t.Fatalf("%s: %v in %s", op, err, got.Value)
		}
	}
}

// wait waits until an expression of the page's is true.
func (b *browser) wait(js string) {
	b.t.Helper()
	b.do("wait", args{"js": js}, nil)
}

// text evaluates an expression whose value is a string.
func (b *browser) text(js string) (s string) {
	b.t.Helper()
	b.do("eval", args{"js": js}, &s)
	return s
}

// shot saves a picture of the page in the directory TETHER_SCREENSHOTS, for people to
// look at.
func (b *browser) shot(name string) {
	b.t.Helper()
	b.do("shot", args{"path": filepath.Join(os.Getenv("TETHER_SCREENSHOTS"), name+".png")}, nil)
}

// seen is the browser's activity besides showing the page.
type seen struct{ Requests, Errors, Dialogs, Popups, Sockets, Sent []string }

// says are the methods that the page may send to its host. An observer needs no others,
// whatever is printed or typed.
var says = []string{ahp.MethodInitialize, ahp.MethodReconnect, ahp.MethodSubscribe, ahp.MethodUnsubscribe, ahp.MethodPing}

// clean fails the test if the page has connected to anything but its host, or has done
// anything there but watch.
func (b *browser) clean(origin string) {
	b.t.Helper()
	var s seen
	b.do("seen", nil, &s)
	for _, url := range s.Requests {
		if !strings.HasPrefix(url, origin+"/") && !strings.HasPrefix(url, "data:") {
			b.t.Errorf("the page asked for %s", url)
		}
	}
	for _, e := range s.Errors {
		// Console messages of a cut connection.
		if !strings.Contains(e, "ERR_") && !strings.Contains(e, "WebSocket") && !strings.Contains(e, "status of 401") {
			b.t.Errorf("the page's console says %s", e)
		}
	}
	for _, text := range s.Sent {
		var m struct{ Method string }
		if err := json.Unmarshal([]byte(text), &m); err != nil || !slices.Contains(says, m.Method) {
			b.t.Errorf("the page has sent %.300s", text)
		}
	}
	if len(s.Dialogs)+len(s.Popups) > 0 {
		b.t.Errorf("the page opened dialogs %q and windows %q", s.Dialogs, s.Popups)
	}
}

// site is a host with its page and a machine.
type site struct {
	t       *testing.T
	owner   *host.Host // machines connect to it
	host    *host.Host // serves the page; the same host, or another node (startNodes)
	server  *httptest.Server
	conns   *connections
	machine *client.Conn

	mu    sync.Mutex
	heads []string // address and header of each request so far
}

// connections is a listener with the connections that it has accepted.
type connections struct {
	net.Listener
	mu  sync.Mutex
	all []net.Conn
	off bool
}

// Accept implements net.Listener.
func (c *connections) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, conn)
		if c.off {
			conn.Close()
		}
	}
	return conn, err
}

// cut ends all connections silently, and refuses new ones until they are allowed again.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
	for _, conn := range c.all {
		conn.Close()
	}
	c.all = nil
}

func (c *connections) may() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = false
}

const token = "own-token"

func newSite(t *testing.T, o host.Options) *site {
	t.Helper()
	o.Token = token
	s := &site{t: t}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.heads = append(s.heads, fmt.Sprint(r.RequestURI, r.Header))
		s.mu.Unlock()
		s.host.ServeHTTP(w, r)
	}))
	at := s.server.Listener.Addr().(*net.TCPAddr)
	o.Previews = preview.Options{Domain: fmt.Sprint("localhost:", at.Port), Key: [32]byte{1}}
	s.owner, s.host = startNodes(t, o)
	s.conns = &connections{Listener: s.server.Listener}
	s.server.Listener = s.conns
	s.server.Start()
	t.Cleanup(func() { s.host.Close(); s.server.Close() })
	s.machine = s.join("laptop")
	return s
}

// join connects a machine.
func (s *site) join(name string) *client.Conn {
	s.t.Helper()
	near, far := testkit.Channels()                                     // not through the listener, so that cut ends only the browser's connections
	go func() { _ = s.owner.ServeChannel(context.Background(), far) }() // ends with the host
	c := must.Get(client.ConnectChannel(s.t.Context(), near,
		client.Options{ClientID: name + "-client", Info: ahp.Implementation{Name: "test", Title: name}, Meta: ahp.NewClientMeta()}))(s.t)
	s.t.Cleanup(c.Close)
	return c
}

// lend announces a terminal of a machine and returns its URI.
func (s *site) lend(c *client.Conn, machine, name string) string {
	s.t.Helper()
	return s.lendAs(c, machine, name, name)
}

// lendAs is lend with a name that need not fit into a URI.
func (s *site) lendAs(c *client.Conn, machine, id, name string) string {
	s.t.Helper()
	cols, rows := int64(80), int64(24)
	uri := "ahp-terminal:/" + machine + "-" + id
	must.Do(s.t, c.CreateTerminal(s.t.Context(), ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim(machine + "-client"), Name: name,
		Cwd: "file:///home/me/shop", Cols: &cols, Rows: &rows, ExecutionTarget: ahp.TargetClient}))
	return uri
}

// act dispatches actions as the machine, and returns when the host has applied them.
func (s *site) act(uri string, all ...ahp.Action) {
	s.t.Helper()
	for _, a := range all {
		must.Get(s.machine.Dispatch(s.t.Context(), uri, a))(s.t)
	}
	must.Do(s.t, s.machine.Barrier(s.t.Context()))
}

func print(text string) ahp.Action { return ahp.TerminalOutput{Data: text} }

// command returns the actions of a finished command.
func command(id, line, output string, code int64, ms float64) []ahp.Action {
	return []ahp.Action{ahp.TerminalCommandExecuted{CommandID: id, CommandLine: line, Timestamp: 1_760_000_000_000}, print(output),
		ahp.TerminalCommandFinished{CommandID: id, ExitCode: &code, DurationMs: &ms}}
}

// follow opens a link and presses its button.
func (s *site) follow(b *browser, link string) {
	s.t.Helper()
	b.do("goto", args{"url": s.server.URL + link}, nil)
	b.wait("document.querySelector('#code').type === 'hidden'")
	b.do("click", args{"selector": "button"}, nil)
}

// login opens the page by a link.
func (s *site) login(b *browser) {
	s.t.Helper()
	s.follow(b, s.host.Page().Launch(rights.Principal{Name: "ann", Role: rights.RoleObserver}))
	b.wait("document.querySelector('#link')?.dataset.state === 'up'")
}

// choose shows a terminal on the page.
func (s *site) choose(b *browser, name string) {
	s.t.Helper()
	js := must.Get(json.Marshal(name))(s.t)
	b.wait("[...document.querySelectorAll('nav .name')].some(e => e.textContent === " + string(js) + ")")
	b.do("eval", args{"js": "[...document.querySelectorAll('nav a')].find(a => a.querySelector('.name').textContent === " + string(js) + ").click()"}, nil)
	b.wait("!document.querySelector('#view').hidden && document.querySelector('#name').textContent === " + string(js))
}
