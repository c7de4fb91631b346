package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
	"tether/platform/secret"
)

const patience = testkit.Patience

// command runs tether-host to its end and returns its output.
func command(t *testing.T, want int, args ...string) string {
	t.Helper()
	var stdout, stderr testkit.Output
	if got := run(t.Context(), args, &stdout, &stderr); got != want {
		t.Fatalf("tether-host %s: status %d, want %d: %s", strings.Join(args, " "), got, want, stderr.String())
	}
	return strings.TrimSpace(stdout.String() + stderr.String())
}

func TestTokensOfARunningHost(t *testing.T) {
	testkit.Leaks(t)
	file := filepath.Join(t.TempDir(), "state", "tokens.json")
	audit := filepath.Join(t.TempDir(), "audit", "log.jsonl")
	r := start(t, "--token", ownToken, "--tokens", file, "--audit-log", audit, "--log-level", "trace")
	laptop := command(t, exitOK, "token", "create", "laptop", "--tokens", file)
	ann := command(t, exitOK, "token", "create", "ann", "--role", "observer", "--expires", "90d", "--tokens", file)
	machine := must.Get(connect(t, r, laptop, client.Options{ClientID: "laptop"}))(t)
	one := int64(80)
	check.OK(t, machine.CreateTerminal(t.Context(), ahp.CreateTerminalParams{Channel: "ahp-terminal:/a", Claim: ahp.ClientClaim("laptop"),
		Cols: &one, Rows: &one, ExecutionTarget: ahp.TargetClient}))
	observer := must.Get(connect(t, r, ann, client.Options{ClientID: "ann"}))(t)
	if _, err := observer.Subscribe(t.Context(), "ahp-terminal:/a"); err != nil {
		t.Error(err)
	}
	if err := observer.DisposeTerminal(t.Context(), "ahp-terminal:/a"); err == nil {
		t.Error("an observer disposed of a terminal")
	}
	list := command(t, exitOK, "token", "ls", "--tokens", file)
	if strings.Contains(list, laptop) || !strings.Contains(list, "laptop") || !strings.Contains(list, "observer") || strings.Count(list, "\n") != 2 {
		t.Errorf("listed\n%s", list)
	}
	var parsed struct {
		Tokens []struct{ Principal, Role string }
	}
	if err := json.Unmarshal([]byte(command(t, exitOK, "token", "ls", "--json", "--tokens", file)), &parsed); err != nil || len(parsed.Tokens) != 2 {
		t.Errorf("as JSON: %+v, %v", parsed, err)
	}
	if said := command(t, exitOK, "token", "revoke", "laptop", "--tokens", file); !strings.Contains(said, "laptop, machine") {
		t.Errorf("revoking said %q", said)
	}
	select {
	case <-machine.Done():
	case <-time.After(patience):
		t.Fatal("the connection of a revoked token goes on")
	}
	if _, err := connect(t, r, laptop, client.Options{ClientID: "laptop"}); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("with the revoked token: %v", err)
	}
	r.end(t)
	record, err := os.ReadFile(audit)
	if err != nil || !strings.Contains(string(record), `"principal":"ann"`) || !strings.Contains(string(record), `"type":"denied"`) {
		t.Errorf("the audit log: %v\n%s", err, record)
	}
	for _, token := range []string{laptop, ann} {
		if strings.Contains(string(record)+r.stderr.String(), token) {
			t.Error("a token is in a log")
		}
	}
}

func TestTokenCommandLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "tokens.json")
	for _, c := range []struct {
		args string
		want int
		text string
	}{
		{"token nonsense", exitUsage, "nonsense"},
		{"token create", exitUsage, "missing argument: the name"},
		{"token create a b", exitUsage, `unexpected argument "b"`},
		{"token create a/b", exitUsage, "letter or digit"},
		{"token create a --role king", exitUsage, "king"},
		{"token create a --expires soon", exitUsage, "12h"},
		{"token create --nonsense", exitUsage, "see tether-host token create --help"},
		{"token create a --expires -1h", exitUsage, "12h"},
		{"token create a --expires 1dd", exitUsage, "12h"},
		{"token create a --expires 100000d", exitUsage, "--expires 100000d is too long"},
		{"token create a --expires 36501d", exitUsage, "use at most 36500d, or never"},
		{"token create a --expires 876001h", exitUsage, "use at most 36500d, or never"},
		{"token create a --expires 99999999999999999999d", exitUsage, "at most 36500d"},
		{"token revoke a", exitFailure, "no such token"},
		{"token revoke", exitUsage, "token ls"},
		{"token ls x", exitUsage, `unexpected argument "x"`},
	} {
		if said := command(t, c.want, append(strings.Fields(c.args), "--tokens", file)...); !strings.Contains(said, c.text) {
			t.Errorf("%s: %q, want %q in it", c.args, said, c.text)
		}
	}
}

// makeCertificate writes a certificate for 127.0.0.1 and its key, and returns who trusts
// it.
func makeCertificate(t *testing.T, cert, key string, serial int64) *x509.CertPool {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)
	bytes := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: bytes}} {
		must.Do(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	parsed := must.Get(x509.ParseCertificate(der))(t)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool
}

func TestTLS(t *testing.T) {
	testkit.Leaks(t)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := makeCertificate(t, cert, key, 1)
	r := start(t, "--token", ownToken, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(r.url, "wss://") {
		t.Fatalf("it listens at %s", r.url)
	}
	dial := func(pool *x509.CertPool) error {
		c, err := wsconn.Dial(t.Context(), r.url+"?tkn="+ownToken, wsconn.Options{TLSConfig: &tls.Config{RootCAs: pool}})
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := dial(pool); err != nil {
		t.Errorf("with its certificate trusted: %v", err)
	}
	if err := dial(x509.NewCertPool()); err == nil {
		t.Error("a certificate that nobody trusts was trusted")
	}
	if _, err := wsconn.Dial(t.Context(), "ws"+strings.TrimPrefix(r.url, "wss")+"?tkn="+ownToken, wsconn.Options{}); err == nil {
		t.Error("it takes connections without TLS")
	}
}

// A renewed certificate is taken without a restart, and half of one is not.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	c := &certificate{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	serial := func() int64 {
		t.Helper()
		c.looked = time.Time{} // a minute later
		pair := must.Get(c.current(nil))(t)
		return pair.Leaf.SerialNumber.Int64()
	}
	touch := func(at time.Time) {
		for _, path := range []string{c.cert, c.key} {
			must.Do(t, os.Chtimes(path, at, at))
		}
	}
	makeCertificate(t, c.cert, c.key, 1)
	touch(time.Unix(1000, 0))
	if got := serial(); got != 1 {
		t.Errorf("serial %d, want 1", got)
	}
	makeCertificate(t, c.cert, c.key, 2)
	touch(time.Unix(2000, 0))
	if got := serial(); got != 2 {
		t.Errorf("serial %d after the renewal, want 2", got)
	}
	must.Do(t, os.WriteFile(c.key, []byte("half"), 0o600))
	if got := serial(); got != 2 {
		t.Errorf("serial %d with half a renewal, want 2", got)
	}
}

// The log says when the file of tokens cannot be read, and not the same again when it
// can.
func TestTokensThatCanBeReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "private", "tokens.json")
	command(t, exitOK, "token", "create", "ann", "--tokens", path)
	good := must.Get(secret.ReadFile(path))(t)
	var log testkit.Output
	logger := zerolog.New(&log)
	s := settings{tokens: path}
	stop := must.Get(s.openTokens(t.Context(), &host.Options{Logger: &logger}, credential{}))(t)
	defer stop()
	for _, step := range []struct{ file, says string }{{"{", "stay in force"}, {string(good), "can be read again"}} {
		log.Reset()
		must.Do(t, secret.WriteFile(path, []byte(step.file)))
		testkit.Eventually(t, patience, "something is said", func() bool { return log.String() != "" })
		if got := log.String(); !strings.Contains(got, step.says) {
			t.Errorf("it says %s, want that they %s", got, step.says)
		}
	}
}
