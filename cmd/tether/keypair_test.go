package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/host"
	"tether/host/access"
	"tether/host/devices"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/pairing"
	"tether/platform/proc"
)

// keyHost is a host that pairs by keys. It notes the tokens of sessions.
type keyHost struct {
	url, pending string
	watcher      string // an observer's token
	tokens       *access.Tokens

	mu       sync.Mutex
	sessions []string
}

func startKeyHost(t *testing.T) *keyHost {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	k := &keyHost{pending: filepath.Join(dir, "pending.json")}
	var err error
	if k.tokens, err = access.Open(access.File(filepath.Join(dir, "tokens.json"))); err != nil {
		t.Fatal(err)
	}
	if k.watcher, _, err = k.tokens.Create("watcher", rights.RoleObserver, 0); err != nil { // makes the directory
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	door := must.Get(devices.New(devices.Options{Key: key, Tokens: k.tokens, Pending: access.OwnFile(k.pending)}))(t)
	h := host.New(host.Options{Access: devices.Both(k.tokens, door), Grace: time.Minute})
	h.Page().Handle(pairing.Path, door)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			k.mu.Lock()
			k.sessions = append(k.sessions, r.URL.Query().Get("tkn"))
			k.mu.Unlock()
		}
		h.ServeHTTP(w, r)
	})}
	k.url = "ws://" + l.Addr().String()
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	ctx, cancel := context.WithCancel(context.Background())
	watching := make(chan struct{})
	go func() { defer close(watching); k.tokens.Run(ctx, nil) }()
	t.Cleanup(func() { s.Close(); h.Close(); cancel(); <-done; <-watching })
	return k
}

// given runs tether with that on its standard input, and returns all that it printed.
func given(t *testing.T, input string, args ...string) (out string, status int) {
	t.Helper()
	c := exec.Command("tether", args...)
	c.Stdin = strings.NewReader(input)
	data, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(data), c.ProcessState.ExitCode()
}

var codeLine = regexp.MustCompile(`(?m)^code +([0-9]{6})$`)

// pairByCode runs tether pair without a terminal, as if no desktop were there, and
// approves the shown code.
func (k *keyHost) pairByCode(t *testing.T, args ...string) (out string) {
	t.Helper()
	var printed testkit.Output
	c := exec.Command("tether", append([]string{"pair", k.url}, args...)...)
	c.Stdout, c.Stderr = &printed, &printed
	must.Do(t, c.Start())
	var code string
	testkit.Eventually(t, patience, "a code is shown", func() bool {
		if m := codeLine.FindStringSubmatch(printed.String()); m != nil {
			code = m[1]
		}
		return code != ""
	})
	if _, err := devices.Approve(access.OwnFile(k.pending), k.tokens, code, "laptop"); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("pair: %v: %s", err, printed.String())
	}
	return printed.String()
}

// canaries are this machine's key, in the forms in which it could leak, and other
// secrets.
func (k *keyHost) canaries(t *testing.T, home string, more ...string) map[string]string {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(home, "state", "hosts.json")))(t)
	var f struct {
		Secrets struct {
			Key []byte `json:"device_key"`
		} `json:"secrets"`
	}
	if err := json.Unmarshal(data, &f); err != nil || len(f.Secrets.Key) != ed25519.SeedSize {
		t.Fatalf("no key in %s: %v", data, err)
	}
	all := map[string]string{"key": string(f.Secrets.Key), "key in base64": base64.RawStdEncoding.EncodeToString(f.Secrets.Key),
		"key in hexadecimal": hex.EncodeToString(f.Secrets.Key), "private key": string(ed25519.NewKeyFromSeed(f.Secrets.Key))}
	for n, secret := range more {
		all[fmt.Sprint("token ", n)] = secret
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.sessions) == 0 {
		t.Error("no session was opened")
	}
	for n, token := range k.sessions {
		all[fmt.Sprint("session ", n)] = token
	}
	return all
}

// unpacked is everything in an archive of bugreport.
func unpacked(t *testing.T, path string) (all string) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	z := must.Get(gzip.NewReader(f))(t)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		data, readErr := io.ReadAll(r)
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		all += h.Name + "\n" + string(data) + "\n"
	}
}

// No secret is in a command line, an environment, the output of commands, or any file
// except its own.
func TestSecretsStayWhereTheyAre(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	byCode, byToken := startKeyHost(t), startKeyHost(t)
	plain := &testHost{}
	must.Do(t, plain.start("plain-canary-token"))
	defer plain.stop()
	token, _, err := byToken.tokens.CreatePairing("laptop", time.Hour)
	must.Do(t, err)
	said := map[string]string{"pair by code": byCode.pairByCode(t, "--name", "one")}
	if !strings.Contains(said["pair by code"], "paired with one") || !strings.Contains(said["pair by code"], "hosts.json (0600)") {
		t.Errorf("it says %s", said["pair by code"])
	}
	run := func(input string, args ...string) {
		t.Helper()
		out, status := given(t, input, args...)
		if said[strings.Join(args, " ")] = out; status != 0 {
			t.Errorf("%v: %d %s", args, status, out)
		}
	}
	run(token+"\n", "pair", "--token-file", "-", "--name", "two", byToken.url)
	for name, args := range map[string][]string{"one": {"pair", byCode.url}, "two": {"pair", "--token-file", "-", byToken.url}} { // each once more
		run(token+"\n", args...)
		if out := said[strings.Join(args, " ")]; !strings.Contains(out, "paired with "+name) || name == "one" && !strings.Contains(out, "already") {
			t.Errorf("paired once more it says %s", out)
		}
	}
	run("plain-canary-token\n", "pair", "--token-file", "-", "--name", "three", "ws://"+plain.address)
	run("", "logs", "--set-level", "debug")
	run("", "run", "--detach", "--name", "web", "--host", "one,two,three", "--", "sh", "-c", "env; exec sleep 1000")
	testkit.Eventually(t, patience, "all hosts are online", func() bool {
		out, _ := command(t, "host", "ls")
		return strings.Count(out, "online") == 3
	})
	report := filepath.Join(t.TempDir(), "report.tar.gz")
	for _, line := range []string{"status", "status --json", "host ls", "host ls --json", "ls --json", "read web", "logs -n 1000", "config view",
		"bugreport -o " + report} {
		run("", strings.Fields(line)...)
	}
	testkit.Eventually(t, patience, "the terminal is at the host", func() bool {
		out, _ := given(t, "", "watch", "--list", "one")
		return strings.Contains(out, "web")
	})
	run("", "watch", "--list", "one")
	if out := said["watch --list one"]; !strings.Contains(out, "an observer's token") || !strings.Contains(out, "web") {
		t.Errorf("watching by the machine's key: %s", out)
	}
	run(byCode.watcher, "watch", "--list", "--token-file", "-", "one")
	if out := said["watch --list --token-file - one"]; !strings.Contains(out, "web") {
		t.Errorf("watching by an observer's token: %s", out)
	}
	said["the archive"] = unpacked(t, report)
	if !strings.Contains(said["host ls --json"], `"credential": "key"`) || !strings.Contains(said["status"], "secrets    ") {
		t.Errorf("what is shown: %s%s", said["host ls --json"], said["status"])
	}
	canaries := byCode.canaries(t, home, token, "plain-canary-token", byCode.watcher)
	for name, secret := range byToken.canaries(t, home) {
		canaries["two: "+name] = secret
	}
	for what, content := range said {
		hides(t, what, content, canaries)
	}
	for what, content := range traces(t, home) {
		hides(t, what, content, canaries)
	}
	for _, name := range []string{"one", "two", "three"} {
		run("", "unpair", name)
	}
	for _, k := range []*keyHost{byCode, byToken} {
		if all, err := k.tokens.List(); err != nil || len(all) != 1 {
			t.Errorf("after unpair the host knows %+v, %v", all, err)
		}
	}
}

// traces are the files below a home, except for the one with secrets, and the system's
// view of each process.
func traces(t *testing.T, home string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "hosts.json" {
			data, _ := os.ReadFile(path) // it may go while this looks
			all[path] = string(data)
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	processes, _ := proc.List() // empty where processes cannot be listed
	for _, p := range processes {
		for _, what := range []string{"cmdline", "environ"} {
			data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.Pid, what))
			all[fmt.Sprintf("%s of process %d", what, p.Pid)] = string(data)
		}
	}
	return all
}

func hides(t *testing.T, what, content string, canaries map[string]string) {
	t.Helper()
	for name, secret := range canaries {
		if secret != "" && strings.Contains(content, secret) {
			t.Errorf("%s holds %s", what, name)
		}
	}
}

// Ctrl-C gives up, and leaves nothing behind.
func TestPairingIsGivenUp(t *testing.T) {
	testkit.Unix(t, testkit.Bytes)
	newHome(t)
	k := startKeyHost(t)
	p := sit(t, "pair", k.url)
	p.sees("tether-host approve")
	p.types("\x03")
	p.exits(130)
	if out, _ := command(t, "host", "ls"); strings.Contains(out, k.url) {
		t.Errorf("paired: %s", out)
	}
	if all, err := k.tokens.List(); err != nil || len(all) != 1 {
		t.Errorf("the host knows %+v, %v", all, err)
	}
}
