package access_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// paths are those of tokens and owners in a directory that is closed to others.
func paths(t *testing.T) (tokens, owners string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	must.Do(t, secret.Dir(dir))
	return filepath.Join(dir, "tokens.json"), filepath.Join(dir, "clients.jsonl")
}

func openOwners(t *testing.T, path string, tokens *access.Tokens) *access.Owners {
	t.Helper()
	return must.Get(access.OpenOwners(path, tokens))(t)
}

func TestOwnersOutliveTheHost(t *testing.T) {
	tokenFile, file := paths(t)
	create(t, open(t, tokenFile), "laptop", rights.RoleMachine, 0)
	create(t, open(t, tokenFile), "desk", rights.RoleMachine, 0)
	tokens := open(t, tokenFile)
	o := openOwners(t, file, tokens)
	for _, step := range []struct {
		client, principal string
		ours              bool
	}{{"a", "laptop", true}, {"a", "laptop", true}, {"a", "desk", false}, {"b", "desk", true}, {`"\u2028`, "desk", true}} {
		if ours, err := o.Own(step.client, step.principal); ours != step.ours || err != nil {
			t.Errorf("%s for %s: %v, %v; want %v", step.client, step.principal, ours, err, step.ours)
		}
	}
	again := openOwners(t, file, tokens)
	for client, want := range map[string]string{"a": "laptop", "b": "desk", `"\u2028`: "desk", "c": ""} {
		if got, ok := again.Owner(client); got != want || ok != (want != "") {
			t.Errorf("%s belongs to %q, %v; want %q", client, got, ok, want)
		}
	}
	must.Get(tokens.Revoke("laptop"))(t)
	after := openOwners(t, file, open(t, tokenFile))
	if owner, ok := after.Owner("a"); ok {
		t.Errorf("a belongs to %s, who has no token any more", owner)
	}
	if ours, err := after.Own("a", "desk"); !ours || err != nil {
		t.Errorf("what belonged to somebody who is gone: %v, %v", ours, err)
	}
	if owner, _ := openOwners(t, file, open(t, tokenFile)).Owner("a"); owner != "desk" {
		t.Errorf("a belongs to %q, want desk", owner)
	}
}

// A machine has as many clientIds as it can need, and the file is not longer than it must
// be.
func TestOwnersAreBounded(t *testing.T) {
	tokenFile, file := paths(t)
	create(t, open(t, tokenFile), "laptop", rights.RoleMachine, 0)
	const many = 1100
	var before strings.Builder
	for i := range many {
		fmt.Fprintf(&before, `{"client":"id-%d","principal":"laptop"}`+"\n", i)
	}
	must.Do(t, secret.WriteFile(file, []byte(before.String())))
	o := openOwners(t, file, open(t, tokenFile))
	if _, ok := o.Owner("id-0"); ok {
		t.Error("a machine has as many clientIds as it likes")
	}
	for _, id := range []string{"one", "two"} {
		if ours, err := o.Own(id, "laptop"); !ours || err != nil {
			t.Errorf("%s: %v, %v", id, ours, err)
		}
	}
	if data, err := os.ReadFile(file); err != nil || strings.Count(string(data), "laptop") > 20 {
		t.Errorf("the file has %d lines, %v", strings.Count(string(data), "laptop"), err)
	}
	again := openOwners(t, file, open(t, tokenFile))
	for id, want := range map[string]bool{"one": true, "two": true, fmt.Sprint("id-", many-1): true, "id-0": false} {
		if _, ok := again.Owner(id); ok != want {
			t.Errorf("%s belongs to somebody: %v, want %v", id, ok, want)
		}
	}
}

func TestOwnersThatAreCutOff(t *testing.T) {
	tokenFile, file := paths(t)
	create(t, open(t, tokenFile), "laptop", rights.RoleMachine, 0)
	tokens := open(t, tokenFile)
	text := `{"client":"a","principal":"laptop"}` + "\n" + `{"client":"b","principal":"lap`
	must.Do(t, secret.WriteFile(file, []byte(text)))
	o := openOwners(t, file, tokens)
	must.Get(o.Own("c", "laptop"))(t)
	again := openOwners(t, file, tokens)
	for client, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, ok := again.Owner(client); ok != want {
			t.Errorf("%s belongs to somebody: %v, want %v", client, ok, want)
		}
	}
	must.Do(t, secret.WriteFile(file, []byte(strings.Repeat("x", 10<<10))))
	if _, err := access.OpenOwners(file, tokens); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a file of something else: %v", err)
	}
}

// Of many who claim one id at once, one has it, and the file says the same.
func TestOneOwner(t *testing.T) {
	tokenFile, file := paths(t)
	const many = 20
	for i := range many {
		create(t, open(t, tokenFile), fmt.Sprint("m", i), rights.RoleMachine, 0)
	}
	tokens := open(t, tokenFile)
	o := openOwners(t, file, tokens)
	var all sync.WaitGroup
	winners := make(chan string, many)
	for i := range many {
		all.Go(func() {
			name := fmt.Sprint("m", i)
			if ours, err := o.Own("id", name); err != nil {
				t.Error(err)
			} else if ours {
				winners <- name
			}
		})
	}
	all.Wait()
	if len(winners) != 1 {
		t.Fatalf("%d have it", len(winners))
	}
	winner := <-winners
	if owner, ok := openOwners(t, file, tokens).Owner("id"); !ok || owner != winner {
		t.Errorf("the file says %q, %v; want %q", owner, ok, winner)
	}
}
