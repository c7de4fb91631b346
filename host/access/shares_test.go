package access_test

import (
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tether/host/access"
	"tether/host/share"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// Links outlive the host in a file; expired ones do not, and a damaged file is put aside.
func TestShares(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "shares.json")
	var told []error
	s := access.OpenShares(access.File(path), func(err error) { told = append(told, err) })
	if got := s.Kept(); len(got) != 0 {
		t.Errorf("of no file: %v", got)
	}
	now := time.Now().UTC().Round(time.Second)
	good := share.Link{ID: "abcdefgh", Channel: "ahp-terminal:/a", Secret: sha256.Sum256([]byte("a")), Machine: "laptop", Owner: "p-ann", Name: "laptop/web", Created: now,
		Until: now.Add(time.Hour), Once: true, Guests: [][sha256.Size]byte{sha256.Sum256([]byte("g"))}}
	web := good
	web.ID, web.Port = "cdefghij", 3000
	over := good
	over.ID, over.Until = "bcdefghi", now.Add(-time.Hour)
	must.Do(t, s.Change(func([]share.Link) []share.Link { return []share.Link{web, good, over} }))
	check.Equal(t, "kept", []share.Link{good, web}, access.OpenShares(access.File(path), nil).Kept())
	text, err := secret.ReadFile(path) // others may not read it
	var before struct{ Shares []struct{ ID string } }
	if err != nil || json.Unmarshal(text, &before) != nil || len(before.Shares) != 2 { // the expired one is there, too
		t.Errorf("a node that knows no links for ports reads %+v, %v", before, err)
	}
	for _, text := range []string{"{", `{"version":1,"shares":[{"id":"abcdefgh","secret_sha256":"eA=="}]}`, `{"version":1,"shares":[{"id":"../x","secret_sha256":"` + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" + `"}]}`} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		told = nil
		if got := s.Kept(); len(got) != 0 || len(told) != 1 {
			t.Errorf("%s: %v, told %v", text, got, told)
		}
		if _, err := os.Stat(path + ".damaged"); err != nil {
			t.Error(err)
		}
	}
}
