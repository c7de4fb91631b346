package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/agent/device"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/pairing"
)

// tool runs a subcommand and returns its status and output.
func tool(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs testkit.Output
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// machine is a client with a key of its own.
func machine(t *testing.T, url string) (*device.Client, ed25519.PrivateKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	return machineWith(t, url, key), key
}

func machineWith(t *testing.T, url string, key ed25519.PrivateKey) *device.Client {
	t.Helper()
	c := must.Get(device.New(client.Endpoint{URL: url}, key))(t)
	t.Cleanup(c.Close)
	return c
}

func TestAMachinePairsByACode(t *testing.T) {
	testkit.Leaks(t)
	file := filepath.Join(t.TempDir(), "state", "tokens.json")
	r := start(t, "--token", ownToken, "--tokens", file, "--log-level", "debug")
	c, key := machine(t, r.url)
	hostKey := must.Get(c.HostKey(t.Context()))(t)
	if _, err := c.Session(t.Context(), hostKey); !errors.Is(err, device.ErrRevoked) || !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("a session before pairing: %v", err)
	}
	p := must.Get(c.Begin(t.Context(), "laptop"))(t)
	status, out, _ := tool(t, "pending", "--tokens", file)
	if status != 0 || !strings.Contains(out, p.Code) || !strings.Contains(out, "laptop") {
		t.Errorf("pending: %d %s", status, out)
	}
	status, out, _ = tool(t, "pending", "--json", "--tokens", file)
	var listed struct{ Pending []struct{ Code string } }
	if err := json.Unmarshal([]byte(out), &listed); err != nil || status != 0 || len(listed.Pending) != 1 || listed.Pending[0].Code != p.Code {
		t.Errorf("pending --json: %d %s, %v", status, out, err)
	}
	if status, _, text := tool(t, "approve", "000000x", "--tokens", file); status != exitFailure || !strings.Contains(text, "pending") {
		t.Errorf("a wrong code: %d %s", status, text)
	}
	if status, _, text := tool(t, "token", "create", "ann", "--role", "observer", "--tokens", file); status != 0 {
		t.Errorf("a person: %d %s", status, text)
	}
	for _, args := range [][]string{{"--name", "ann"}, {"--owner", "laptop"}} {
		if status, _, text := tool(t, append([]string{"approve", p.Code, "--tokens", file}, args...)...); status != exitFailure || !strings.Contains(text, "a person's name") {
			t.Errorf("approve %v: %d %s", args, status, text)
		}
	}
	if status, out, text := tool(t, "approve", p.Code, "--tokens", file); status != 0 || !strings.Contains(out, "laptop may lend") {
		t.Fatalf("approve: %d %s %s", status, out, text)
	}
	defer func() {
		if !strings.Contains(r.stderr.String(), "laptop has paired with this host") {
			t.Errorf("the host does not say who has paired: %s", r.stderr.String())
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if principal, err := p.Wait(ctx); err != nil || principal != "laptop" || !p.HostKey.Equal(hostKey) {
		t.Fatalf("waited: %q, %v", principal, err)
	}

	// The key opens a connection, each by a session of its own.
	token := must.Get(c.Session(t.Context(), hostKey))(t)
	conn := must.Get(connect(t, r, token, client.Options{}))(t)
	if _, err := connect(t, r, token, client.Options{ClientID: "thief"}); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("the token a second time: %v", err)
	}

	// Revoked, its connection ends, and no other comes.
	if status, out, _ := tool(t, "token", "ls", "--tokens", file); status != 0 || !strings.Contains(out, "machine") {
		t.Errorf("ls: %s", out)
	}
	if status, _, text := tool(t, "token", "revoke", "laptop", "--tokens", file); status != 0 {
		t.Fatal(text)
	}
	select {
	case <-conn.Done():
	case <-time.After(patience):
		t.Error("the connection goes on")
	}
	if _, err := c.Session(t.Context(), hostKey); !errors.Is(err, device.ErrRevoked) {
		t.Errorf("a session afterwards: %v", err)
	}
	r.end(t)
	for _, secret := range []string{token, string(key.Seed())} {
		if strings.Contains(r.stderr.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

func TestAMachinePairsByAToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(dir, "tokens.json")
	r := start(t, "--token", ownToken, "--tokens", file)
	status, token, text := tool(t, "token", "create", "laptop", "--once", "--tokens", file)
	if token = strings.TrimSpace(token); status != 0 || !strings.HasPrefix(token, pairing.TokenPrefix) {
		t.Fatalf("%d %s", status, text)
	}
	if status, _, _ := tool(t, "token", "create", "eve", "--once", "--role", "admin", "--tokens", file); status != exitUsage {
		t.Errorf("a pairing token for an admin: %d", status)
	}
	if _, err := connect(t, r, token, client.Options{}); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("a pairing token opens a connection: %v", err)
	}
	c, key := machine(t, r.url)
	hostKey := must.Get(c.HostKey(t.Context()))(t)
	if _, err := c.Redeem(t.Context(), hostKey, token+"x"); !errors.Is(err, device.ErrToken) {
		t.Errorf("a wrong token: %v", err)
	}
	if principal, err := c.Redeem(t.Context(), hostKey, token); err != nil || principal != "laptop" {
		t.Fatalf("%q, %v", principal, err)
	}
	other, _ := machine(t, r.url)
	if _, err := other.Redeem(t.Context(), hostKey, token); !errors.Is(err, device.ErrToken) {
		t.Errorf("a second machine with the same token: %v", err)
	}

	// The host is the same after a restart; one with another key is not believed.
	r.end(t)
	again := start(t, "--token", ownToken, "--tokens", file)
	c = machineWith(t, again.url, key)
	if _, err := c.Session(t.Context(), hostKey); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	again.end(t)
	must.Do(t, os.Remove(filepath.Join(dir, "host-key.pem")))
	impostor := start(t, "--token", ownToken, "--tokens", file)
	c = machineWith(t, impostor.url, key)
	if _, err := c.Session(t.Context(), hostKey); !errors.Is(err, device.ErrIdentity) || !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("another host: %v", err)
	}
	if now, err := c.HostKey(t.Context()); err != nil || bytes.Equal(now, hostKey) {
		t.Errorf("its key is %x, %v", now, err)
	} else if err := c.Leave(t.Context(), now); err != nil {
		t.Errorf("leave: %v", err)
	}
	if all, err := os.ReadFile(file); err != nil || strings.Contains(string(all), "laptop") {
		t.Errorf("it is still there: %s, %v", all, err)
	}
}

func TestHostKeysThatAreNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(dir, "tokens.json")
	if status, _, text := tool(t, "token", "create", "x", "--tokens", file); status != 0 { // makes the directory
		t.Fatal(text)
	}
	for _, content := range []string{"", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "host-key.pem"), []byte(content), 0o600))
		if status, _, text := tool(t, "--listen", "127.0.0.1:0", "--token", ownToken, "--tokens", file); status != exitFailure || !strings.Contains(text, "host key") {
			t.Errorf("%q: %d %s", content, status, text)
		}
	}
	// Where everybody is let in, nobody is paired.
	r := start(t, "--without-token", "--tokens", file)
	c, _ := machine(t, r.url)
	if _, err := c.HostKey(t.Context()); !errors.Is(err, device.ErrNotOffered) {
		t.Errorf("without tokens: %v", err)
	}
}
