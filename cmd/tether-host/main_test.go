package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// running is the command under way.
type running struct {
	url    string
	stderr testkit.Output
	stop   context.CancelFunc
	ended  chan int // its status
}

// ownToken is strong enough for a host's own token.
const ownToken = "test-only_7Qh2mXw9Zk4vR1tB6nE3"

// start runs the command on a free port until the test ends, and waits until it accepts
// connections.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{stop: cancel, ended: make(chan int, 1)}
	args = append([]string{"--listen", "127.0.0.1:0", "--tokens", filepath.Join(t.TempDir(), "tokens.json")}, args...)
	out, in := io.Pipe()
	go func() {
		r.ended <- run(ctx, args, in, &r.stderr)
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it ended with status %d before it was ready: %s", <-r.ended, r.stderr.String())
	}
	t.Cleanup(func() { r.end(t) })
	ready, url, _ := strings.Cut(strings.TrimSpace(line), " ")
	if ready != "READY" || !strings.HasPrefix(strings.Replace(url, "wss:", "ws:", 1), "ws://127.0.0.1:") {
		t.Fatalf("it printed %q, want READY ws://127.0.0.1:PORT", line)
	}
	r.url = url
	return r
}

// end stops it as SIGTERM does.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case status := <-r.ended:
		if status != exitOK {
			t.Errorf("it ended with status %d, want 0: %s", status, r.stderr.String())
		}
		r.ended <- status
	case <-time.After(patience):
		t.Error("it did not end")
	}
}

func connect(t *testing.T, r *running, token string, o client.Options) (*client.Conn, error) {
	t.Helper()
	if o.ClientID == "" {
		o.ClientID = "test"
	}
	c, err := client.Connect(t.Context(), client.Endpoint{URL: r.url, Token: token}, o)
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

func TestTokenMadeForTheRun(t *testing.T) {
	testkit.Leaks(t)
	r := start(t)
	var token string
	testkit.Eventually(t, patience, "the token is shown", func() bool {
		_, rest, ok := strings.Cut(r.stderr.String(), "token (for this run): ")
		token, _, _ = strings.Cut(rest, "\n")
		return ok && strings.Contains(r.stderr.String(), "tether pair "+r.url)
	})
	if _, err := connect(t, r, token, client.Options{}); err != nil {
		t.Errorf("with the token shown: %v", err)
	}
	for _, wrong := range []string{"", "x" + token} {
		if _, err := connect(t, r, wrong, client.Options{}); !errors.Is(err, client.ErrUnauthorized) {
			t.Errorf("with token %q: %v, want ErrUnauthorized", wrong, err)
		}
	}
	if n := strings.Count(r.stderr.String(), token); n != 1 {
		t.Errorf("the token was shown %d times", n)
	}
}

func TestTokenFile(t *testing.T) {
	testkit.Leaks(t)
	file := filepath.Join(t.TempDir(), "token")
	r := start(t, "--token-file", file) // makes it
	data := must.Get(os.ReadFile(file))(t)
	if info, err := os.Stat(file); err != nil || filepath.Separator == '/' && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	token := strings.TrimSpace(string(data))
	if _, err := connect(t, r, token, client.Options{}); err != nil {
		t.Error(err)
	}
	if strings.Contains(r.stderr.String(), token) {
		t.Error("the token in the file was shown")
	}
	r.end(t)
	if said := r.stderr.String(); !strings.Contains(said, "see them in a browser (once): http://127.0.0.1:") || !strings.Contains(said, "/launch#") {
		t.Errorf("it prints no link: %s", said)
	}
	again := start(t, "--token-file", file)
	if _, err := connect(t, again, token, client.Options{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestWithoutToken(t *testing.T) {
	testkit.Leaks(t)
	r := start(t, "--without-token")
	c, err := connect(t, r, "", client.Options{})
	must.Do(t, err)
	err = c.CreateTerminal(t.Context(), ahp.CreateTerminalParams{Channel: "ahp-terminal:/s", Claim: ahp.ClientClaim("test")})
	if err == nil || !strings.Contains(err.Error(), "runs no terminals") {
		t.Errorf("a shell without a token: %v, want to be refused", err)
	}
}

func TestCommandLinesThatCannotBeFollowed(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		write := func() error { return os.WriteFile(path, []byte(content), mode) }
		if mode == 0o600 {
			write = func() error { return secret.WriteFile(path, []byte(content)) } // Windows has no modes
		}
		must.Do(t, write())
		return path
	}
	open := 0 // where files have no modes, others cannot be let in by one
	if filepath.Separator == '/' {
		open = exitFailure
	}
	for _, test := range []struct {
		args []string
		want int
		text string // in its output
	}{
		{[]string{"serve"}, exitUsage, `"serve"`},
		{[]string{"aprove"}, exitUsage, "did you mean approve?"},
		{[]string{"--nonsense"}, exitUsage, "--nonsense"},
		{[]string{"--without-token", "--listen", "0.0.0.0:0"}, exitUsage, "--without-token"},
		{[]string{"--without-token", "--listen", ":0"}, exitUsage, "--without-token"},
		{[]string{"--without-token", "--listen", "example.com:0"}, exitUsage, "--without-token"},
		{[]string{"--without-token", "--listen", "nonsense"}, exitUsage, "--listen"},
		{[]string{"--listen", "127.0.0.1:99999"}, exitFailure, "listen"},
		{[]string{"--listen", "0.0.0.0:0"}, exitUsage, "--tls-cert"},
		{[]string{"--listen", "example.com:0", "--token", "t-secret"}, exitUsage, "clear text"},
		{[]string{"--tls-cert", filepath.Join(dir, "cert")}, exitUsage, "--tls-key"},
		{[]string{"--tls-cert", filepath.Join(dir, "cert"), "--tls-key", filepath.Join(dir, "key")}, exitFailure, "certificate"},
		{[]string{"--public-url", "host.example"}, exitUsage, "--public-url"},
		{[]string{"--public-url", "https://host.example/page"}, exitUsage, "--public-url"},
		{[]string{"--public-url", "http://host.example"}, exitUsage, "clear text"},
		{[]string{"--public-url", "http://host.example", "--plaintext", "--tls-cert", filepath.Join(dir, "cert"), "--tls-key", filepath.Join(dir, "key")}, exitUsage, "clear text"},
		{[]string{"--max-connections", "0"}, exitUsage, "--max-connections"},
		{[]string{"--max-terminals", "70000"}, exitUsage, "--max-terminals"},
		{[]string{"--tokens", file("tokens", "{]", 0o600)}, exitFailure, "repair the file"},
		{[]string{"--tokens", file("tokens9", `{"version":9}`, 0o600)}, exitFailure, "version 9"},
		{[]string{"--token", "t-secret", "--without-token"}, exitUsage, "cannot be combined"},
		{[]string{"--token", "t-secret/?"}, exitUsage, "--token is invalid"},
		{[]string{"--token", "t-secret"}, exitUsage, "too weak"},
		{[]string{"--token", strings.Repeat("ab", 14)}, exitUsage, "too weak"},
		{[]string{"--token-file", file("weak", strings.Repeat("0123456789", 3)+"\n", 0o600)}, exitUsage, "too weak"},
		{[]string{"--token-file", file("open", "t-secret\n", 0o644)}, open, "open"},
		{[]string{"--token-file", file("two", "t-secret words\n", 0o600)}, exitUsage, "is invalid"},
		{[]string{"--token-file", filepath.Join(dir, "no", "such", "place")}, exitFailure, "place"},
		{[]string{"--grace", "0s"}, exitUsage, "--grace"},
		{[]string{"--park", "-1s"}, exitUsage, "--park"},
		{[]string{"--park", "721h"}, exitUsage, "--park"},
		{[]string{"--shell-grace", "721h"}, exitUsage, "--shell-grace"},
		{[]string{"--max-memory", "9223372036854775807"}, exitUsage, "--max-memory"},
		{[]string{"--grace", "soon"}, exitUsage, `--grace must be a time such as 30s, 90m or 48h, not "soon"`},
		{[]string{"--max-connections", "x"}, exitUsage, `--max-connections must be a number, not "x"`},
		{[]string{"--drain", "2h"}, exitUsage, "--drain"},
		{[]string{"--scrollback", "-1"}, exitUsage, "--scrollback"},
		{[]string{"--push", "--without-token"}, exitUsage, "cannot be combined"},
		{[]string{"--webhook-allow", "10.0.0.1"}, exitUsage, "needs --webhooks or --push"},
		{[]string{"--push", "--webhook-allow", "nowhere"}, exitUsage, "--webhook-allow"},
		{[]string{"--agent-shells"}, exitUsage, "--sessions"},
		{[]string{"--agent-shells", "--sessions", "--shells=false"}, exitUsage, "--shells"},
		{[]string{"--agent-shells", "--sessions", "--without-token"}, exitUsage, "everyone on this machine"},
		{[]string{"--log-level", "loud"}, exitUsage, "loud"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			if test.want == 0 {
				testkit.Unix(t, testkit.Modes)
			}
			var stdout, stderr testkit.Output
			args := append([]string{"--tokens", filepath.Join(dir, "none")}, test.args...)
			if !strings.Contains(strings.Join(args, " "), "--listen") {
				args = append([]string{"--listen", "127.0.0.1:0"}, args...)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience) // in case it can be followed
			defer cancel()
			if got := run(ctx, args, &stdout, &stderr); got != test.want || !strings.Contains(stderr.String(), test.text) {
				t.Errorf("status %d, want %d; it said %q, want %q in it", got, test.want, stderr.String(), test.text)
			}
			if strings.Contains(stdout.String()+stderr.String(), "t-secret") {
				t.Errorf("it repeats the token: %s%s", stdout.String(), stderr.String())
			}
		})
	}
}

// Without a word about it, only this machine can reach the host; others can without TLS
// only if that is said to be meant.
func TestWhoCanReachTheHost(t *testing.T) {
	c := newRoot(strings.NewReader(""), io.Discard, io.Discard)
	if loopback, err := isLoopback(c.Flags().Lookup("listen").DefValue); err != nil || !loopback {
		t.Errorf("the default of --listen: %v, %v", loopback, err)
	}
	for name, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.9.10:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false, "[::]:1": false,
		"192.0.2.1:1": false, "localhost.example:1": false, "[fe80::1]:1": false, "127.0.0.1.example:1": false,
	} {
		if got, err := isLoopback(name); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	ended := make(chan int, 1)
	var stderr testkit.Output
	go func() {
		ended <- run(ctx, []string{"--listen", "0.0.0.0:0", "--plaintext", "--token", ownToken, "--tokens", filepath.Join(t.TempDir(), "tokens.json")}, in, &stderr)
		in.Close()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "READY ws://") {
		t.Errorf("with --plaintext it says %q, %v: %s", line, err, stderr.String())
	}
	stop()
	if status := <-ended; status != exitOK {
		t.Errorf("status %d: %s", status, stderr.String())
	}
}

// What the host tells people to type is a URL that works: the public one, for which its
// certificate is, and no wildcard.
func TestAddressesForPeople(t *testing.T) {
	all, one := &net.TCPAddr{IP: net.IPv6unspecified, Port: 9187}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9187}
	for _, c := range []struct {
		at              *net.TCPAddr
		secure          bool
		public          string
		url, typed, web string
	}{
		{one, false, "", "ws://127.0.0.1:9187", "ws://127.0.0.1:9187", "http://127.0.0.1:9187"},
		{all, false, "", "ws://[::]:9187", "ws://127.0.0.1:9187", "http://127.0.0.1:9187"},
		{all, true, "", "wss://[::]:9187", "wss://127.0.0.1:9187", "https://127.0.0.1:9187"},
		{all, true, "https://host.example", "wss://[::]:9187", "wss://host.example", "https://host.example"},
		{one, false, "https://host.example", "ws://127.0.0.1:9187", "wss://host.example", "https://host.example"},
	} {
		s := &settings{publicURL: c.public}
		if url, typed, web := s.addresses(c.at, c.secure); url != c.url || typed != c.typed || web != c.web {
			t.Errorf("%+v: %s, %s, %s", c, url, typed, web)
		}
	}
	for _, public := range []string{"http://127.0.0.1:8080", "http://[::1]:8080/", "http://localhost", "https://host.example"} {
		if err := (&settings{listen: "127.0.0.1:0", publicURL: public}).checkAddress(); err != nil {
			t.Errorf("--public-url %s: %v", public, err)
		}
	}
	if err := (&settings{listen: "0.0.0.0:0", publicURL: "http://host.lan:8080", plaintext: true}).checkAddress(); err != nil {
		t.Errorf("with --plaintext: %v", err)
	}
	r := start(t, "--token-file", filepath.Join(t.TempDir(), "token"), "--public-url", "https://host.example")
	r.end(t)
	if said := r.stderr.String(); !strings.Contains(said, "tether pair wss://host.example ") || !strings.Contains(said, "tether-host link --url wss://host.example ") {
		t.Errorf("it tells people: %s", said)
	}
}

// Without a place for its files, a host says that it has neither tokens nor machines that
// pair.
func TestNoPlaceForTokens(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows finds the place without the environment")
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("TETHER_HOME", "")
	r := start(t, "--tokens", "")
	if said := r.stderr.String(); !strings.Contains(said, "no machine can pair") || !strings.Contains(said, "--tokens FILE") {
		t.Errorf("it says: %s", said)
	}
}

func TestAddressInUse(t *testing.T) {
	r := start(t)
	var stdout, stderr testkit.Output
	got := run(t.Context(), []string{"--listen", strings.TrimPrefix(r.url, "ws://")}, &stdout, &stderr)
	if got != exitFailure || stdout.String() != "" || !strings.Contains(stderr.String(), "--listen takes another address") {
		t.Errorf("status %d, %q, %q; want 1 and why", got, stdout.String(), stderr.String())
	}
}

// transcript is the text of one terminal as a client gets it.
type transcript struct {
	mu     sync.Mutex
	text   strings.Builder
	exited bool
}

func (x *transcript) take(v ahp.EnvelopeView) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if a, err := ahp.DecodeAction(v.Action); err == nil && !v.Rejected {
		switch a := a.(type) {
		case ahp.TerminalData:
			x.text.WriteString(a.Data)
		case ahp.TerminalExited:
			x.exited = true
		}
	}
}

func (x *transcript) has(s string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Contains(x.text.String(), s)
}

func TestServerExecutedShell(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	testkit.Leaks(t)
	t.Setenv("SHELL", "/bin/sh")
	t.Setenv("TETHER_SECRET", "canary")
	r := start(t, "--token", ownToken, "--log-level", "trace")
	var x transcript
	c := must.Get(connect(t, r, ownToken, client.Options{OnEnvelope: x.take}))(t)
	const uri = "ahp-terminal:/shell"
	create := ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim("test"), Cwd: "file:///no/such/place"}
	if err := c.CreateTerminal(t.Context(), create); err == nil {
		t.Error("a shell in a directory that is not there was started")
	}
	create.Cwd = "file://" + filepath.ToSlash(t.TempDir())
	must.Do(t, c.CreateTerminal(t.Context(), create))
	must.Get(c.Subscribe(t.Context(), uri))(t)
	do := func(a ahp.Action) {
		must.Get(c.Dispatch(t.Context(), uri, a))(t)
	}
	do(ahp.TerminalResized{Cols: 101, Rows: 31})
	do(ahp.TerminalInput{Data: "echo size $(stty size) secret${TETHER_SECRET}x\r"})
	testkit.Eventually(t, patience, "the shell says its size", func() bool { return x.has("size 31 101 secretx") })
	do(ahp.TerminalInput{Data: "exit 3\r"})
	testkit.Eventually(t, patience, "the exit", func() bool { x.mu.Lock(); defer x.mu.Unlock(); return x.exited })
	snapshot, err := c.Subscribe(t.Context(), uri)
	if err != nil || !strings.Contains(string(snapshot.Snapshot.State), `"exitCode":3`) {
		t.Errorf("state %s, %v; want exit code 3", snapshot.Snapshot.State, err)
	}
	must.Do(t, c.CreateTerminal(t.Context(), ahp.CreateTerminalParams{Channel: uri + "2", Claim: ahp.ClientClaim("test")}))
	r.end(t) // with a shell that still runs
	if log := r.stderr.String(); strings.Contains(log, "secretx") || strings.Contains(log, ownToken) {
		t.Errorf("terminal content or the token is in the log:\n%s", log)
	}
}
