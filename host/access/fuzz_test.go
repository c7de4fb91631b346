package access_test

import (
	"path/filepath"
	"testing"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// Any file is refused with an error, or it is a list to which a token can be added that
// is not lost.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"version":1,"tokens":[]}`, `{"version":1,"tokens":null}`, `{"version":1,"tokens":[{"id":"t-1","principal":"a","role":"agent",` +
		`"sha256":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","created":"2026-01-01T00:00:00Z","expires":"2027-01-01T00:00:00Z"}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "state", "tokens.json")
		must.Do(t, secret.Dir(filepath.Dir(path)))
		must.Do(t, secret.WriteFile(path, data))
		tokens, err := access.Open(access.File(path))
		if err != nil {
			return
		}
		before := must.Get(tokens.List())(t)
		token, info, err := tokens.Create("fuzz-made-this", rights.RoleObserver, 0)
		if err != nil {
			return // the file has the name in another role
		}
		after, err := tokens.List()
		if err != nil || len(after) != len(before)+1 {
			t.Fatalf("%d tokens, then %d, %v", len(before), len(after), err)
		}
		if p, ok := tokens.Authenticate(token); !ok || p.Name != info.Principal || p.Role != rights.RoleObserver {
			t.Fatalf("the new token is for %+v, %v", p, ok)
		}
	})
}
