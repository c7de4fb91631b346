package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tether/agent/audit"
	"tether/internal/testkit/must"
)

// entry is a line that the tests write.
type entry struct {
	Event string `json:"event"`
	Text  string `json:"text"`
}

// written returns the path of a log with n records.
func written(t *testing.T, n int, o audit.Options) (path string) {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "audit.jsonl")
	}
	l := audit.New(o)
	for i := range n {
		must.Do(t, l.Append(entry{"test", fmt.Sprintf("number %d", i+1)}))
	}
	must.Do(t, l.Close())
	return o.Path
}

// verified is Verify without errors.
func verified(t *testing.T, path string, live *audit.Head) audit.Report {
	t.Helper()
	return must.Get(audit.Verify(path, live))(t)
}

// intact wants a log without a problem that ends with record n.
func intact(t *testing.T, path string, n int64) {
	t.Helper()
	if r := verified(t, path, nil); len(r.Problems) > 0 || r.Last.N != n {
		t.Errorf("the log is not intact up to record %d: %+v", n, r)
	}
}

func readLines(t *testing.T, path string) [][]byte {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	return bytes.SplitAfter(data, []byte("\n"))
}

func writeLines(t *testing.T, path string, lines ...[]byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))
}
