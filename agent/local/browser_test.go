package local_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// page runs in a browser: it tries everything that a page could, with the token, and
// reports the results to its server.
const page = `<!doctype html><meta charset="utf-8"><script type="module">
const {door, token, id} = CONFIG;
const said = {};
const socket = (name, protocols) => new Promise(done => {
  const s = protocols ? new WebSocket("ws://" + door + "/pty", protocols) : new WebSocket("ws://" + door + "/pty");
  const end = text => { said[name] = text; s.close(); done(); };
  s.onerror = () => end("refused");
  s.onopen = () => { if (!id) return end("opened"); s.send(JSON.stringify({type: "pty:attach", id})); };
  s.onmessage = e => {
    const m = JSON.parse(e.data);
    if (m.type === "pty:attached") {
      s.send(JSON.stringify({type: "pty:input", id, data: "typed in a page\n"}));
      s.send(JSON.stringify({type: "ping"}));
      said.history = m.history;
    }
    if (m.type === "pong") end("attached");
  };
});
const ask = async (name, path, options) => {
  try {
    const r = await fetch("http://" + door + path, options);
    said[name] = r.type === "opaque" ? "sent blind" : r.status + "";
  } catch (e) { said[name] = "refused"; }
};
const bearer = {Authorization: "Bearer " + token};
await socket("socket", ["tether.pty.v1", "tether.token." + token]);
await socket("socket without token");
await ask("list", "/v1/terminals", {headers: bearer});
await ask("list without token", "/v1/terminals");
await ask("spawn", "/pty/spawn", {method: "POST", headers: {...bearer, "Content-Type": "application/json"}, body: '{"command":["x"],"cwd":"/"}'});
await ask("blind spawn", "/pty/spawn", {method: "POST", mode: "no-cors", body: '{"command":["x"],"cwd":"/"}'});
await ask("blind shutdown", "/v1/shutdown", {method: "POST", mode: "no-cors", credentials: "include"});
await fetch("/report", {method: "POST", body: JSON.stringify(said)});
</script>`

// browser is Chromium's name here; the test is skipped if it is not installed.
func browser(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the rebound name takes a second loopback address, which Linux has")
	}
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium; scripts/test-tools.sh installs it where it can")
	return ""
}

// attacker serves the page and hears its report.
type attacker struct {
	http.Server
	reports chan map[string]string
	page    string
}

func newAttacker(config map[string]string) *attacker {
	data, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	a := &attacker{reports: make(chan map[string]string, 1), page: strings.Replace(page, "CONFIG", string(data), 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, a.page)
	})
	mux.HandleFunc("POST /report", func(w http.ResponseWriter, r *http.Request) {
		var said map[string]string
		if json.NewDecoder(r.Body).Decode(&said) == nil {
			a.reports <- said
		}
	})
	a.Handler = mux
	return a
}

// browserPatience is how long a browser may take to start, and its page to try
// everything.
const browserPatience = 3 * time.Minute

// visit makes a browser run the page at an address and returns its report. rules maps
// names to addresses.
func visit(t *testing.T, program, address, rules string, a *attacker) map[string]string {
	t.Helper()
	c := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--user-data-dir="+filepath.Join(t.TempDir(), "profile"), "--remote-debugging-port=0",
		"--host-resolver-rules="+rules, "--no-proxy-server", address)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	kill := testkit.StartTree(t, c)
	defer kill()
	select {
	case said := <-a.reports:
		return said
	case <-time.After(browserPatience):
		kill()
		t.Fatalf("the page at %s reports nothing; the browser printed:\n%s", address, out.String())
		return nil
	}
}

// serveOn serves a on a listener until the test ends.
func serveOn(t *testing.T, a *attacker, l net.Listener) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); _ = a.Serve(l) }()
	t.Cleanup(func() { a.Close(); <-done })
}

func TestPagesInABrowser(t *testing.T) {
	program := browser(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	d := serveTCPFor(t, "http://localhost:"+port)
	tm, child := d.spawn("mine")
	child.Print("what was printed before\n")
	d.written(tm.ID, 24)
	a := newAttacker(map[string]string{"door": d.addr, "token": d.token, "id": tm.ID})
	serveOn(t, a, l)

	refused := map[string]string{
		"socket": "refused", "socket without token": "refused", "list": "refused", "list without token": "refused", "spawn": "refused",
		"blind spawn": "refused", "blind shutdown": "refused",
	}
	t.Run("of another origin", func(t *testing.T) {
		got := visit(t, program, "http://attacker.test:"+port+"/", "MAP attacker.test 127.0.0.1", a)
		check.Equal(t, "", refused, got)
	})
	t.Run("of this machine, on another port", func(t *testing.T) {
		got := visit(t, program, "http://127.0.0.1:"+port+"/", "", a)
		check.Equal(t, "", refused, got)
	})
	t.Run("through a rebound name", func(t *testing.T) {
		// The page is at http://rebound.test on the door's own port, and its requests go
		// to the door: the browser treats both as one place.
		bound := newAttacker(map[string]string{"door": "rebound.test:" + d.port, "token": d.token, "id": tm.ID})
		seen := rebind(t, bound, d)
		got := visit(t, program, "http://rebound.test:"+d.port+"/", "MAP rebound.test 127.0.0.2", bound)
		want := map[string]string{
			"socket": "refused", "socket without token": "refused", "list": "403", "list without token": "403", "spawn": "403",
			"blind spawn": "403", "blind shutdown": "403", // it may read the answers: they are its own origin's
		}
		check.Equal(t, "", want, got)
		if n := seen(); n < len(want) {
			t.Errorf("%d requests came to the door, want all %d", n, len(want))
		}
	})
	if typed := child.Typed(); typed != "" {
		t.Errorf("a page that may not typed %q", typed)
	}
	if l, err := d.client.List(t.Context()); err != nil || len(l.Terminals) != 1 {
		t.Errorf("afterwards %d terminals, %v", len(l.Terminals), err)
	}
	t.Run("of the listed origin", func(t *testing.T) {
		got := visit(t, program, "http://localhost:"+port+"/", "", a)
		want := map[string]string{
			"socket": "attached", "history": "what was printed before\n", "socket without token": "refused", "list": "200",
			"list without token": "401", "spawn": "200", "blind spawn": "refused", "blind shutdown": "refused",
		}
		check.Equal(t, "", want, got)
		testkit.Eventually(t, patience, "what the page typed arrives", func() bool { return child.Typed() == "typed in a page\n" })
		if l, err := d.client.List(t.Context()); err != nil || len(l.Terminals) != 2 {
			t.Errorf("afterwards %d terminals, %v; want one spawned by the page, with the token", len(l.Terminals), err)
		}
	})
	if len(d.daemon.asked) > 0 {
		t.Errorf("the daemon was asked %q", d.daemon.asked)
	}
}

// rebind plays a name that resolves to the attacker for its page and to this machine for
// everything else: a server on the door's port, on another address, that passes
// connections on according to their first request. seen returns how many reached the
// door.
func rebind(t *testing.T, a *attacker, d *door) (seen func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:"+d.port)
	if err != nil {
		t.Skipf("no second loopback address: %v", err)
	}
	own := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	serveOn(t, a, own)
	count := make(chan int, 1)
	count <- 0
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := d.addr
		if r.URL.Path == "/" || r.URL.Path == "/report" || r.URL.Path == "/favicon.ico" {
			to = own.Addr().String()
		} else {
			count <- 1 + <-count
		}
		handOn(w, r, to)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = proxy.Serve(l) }()
	t.Cleanup(func() { proxy.Close(); <-done })
	return func() int { n := <-count; count <- n; return n }
}

// handOn passes a request on unchanged, with its Host, and the whole answer; a WebSocket
// becomes a tunnel.
func handOn(w http.ResponseWriter, r *http.Request, to string) {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer conn.Close()
	r.Close = r.Header.Get("Upgrade") == "" // so that the end of the answer ends the tunnel
	if err := r.Write(conn); err != nil {
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	go func() {
		_, _ = io.Copy(conn, buffered)
		conn.Close()
	}()
	_, _ = io.Copy(client, conn)
}
