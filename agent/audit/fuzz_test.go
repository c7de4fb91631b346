package audit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"tether/agent/audit"
	"tether/internal/testkit/must"
)

// FuzzParse: an accepted line is a JSON object whose text decides its hash, so that no
// other text with that number and predecessor passes.
func FuzzParse(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a")
	l := audit.New(audit.Options{Path: path})
	for _, v := range []any{struct{}{}, map[string]any{"event": "x", "argv": []string{"a", "\x00", "é\u2028"}}, map[string]string{"prev": "x", "hash": "y"}} {
		must.Do(f, l.Append(v))
	}
	data := must.Get(os.ReadFile(path))(f)
	for line := range bytes.Lines(data) {
		f.Add(line)
	}
	f.Add([]byte(`{"n":1,"prev":"","hash":""}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := audit.Parse(line)
		if err != nil {
			return
		}
		var fields map[string]any
		if err := json.Unmarshal(r.Fields, &fields); err != nil {
			t.Fatalf("%q is no object: %v", r.Fields, err)
		}
		if r.N <= 0 || len(r.Hash) != 64 || len(r.Prev) != 64 {
			t.Fatalf("%+v", r)
		}
		for i := range len(r.Fields) {
			changed := bytes.Clone(r.Fields)
			changed[i] ^= 1
			if _, err := audit.Parse(changed); err == nil {
				t.Fatalf("%q passes as well as %q", changed, r.Fields)
			}
		}
	})
}
