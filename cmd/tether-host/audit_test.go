package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The log of a host can be checked, while it runs and afterwards.
func TestAuditVerify(t *testing.T) {
	testkit.Leaks(t)
	dir := filepath.Join(t.TempDir(), "log") // made by the host, for its user alone
	log := filepath.Join(dir, "audit.jsonl")
	if got := command(t, exitFailure, "audit", "verify", log); !strings.Contains(got, "audit.jsonl") {
		t.Errorf("without a log: %s", got)
	}
	r := start(t, "--token", ownToken, "--audit-log", log)
	if got := command(t, exitOK, "audit", "verify", log); !strings.HasPrefix(got, "intact: 1 records, 1 to 1\n") {
		t.Errorf("while the host runs: %s", got)
	}
	r.end(t)
	start(t, "--token", ownToken, "--audit-log", log).end(t)

	var got struct {
		SchemaVersion int `json:"schema_version"`
		Intact        bool
		Records       int64
		Problems      []any
	}
	verify := func(want int) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), []string{"audit", "verify", "--json", log}, &stdout, &stderr)
		if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || status != want || got.SchemaVersion != 1 {
			t.Fatalf("status %d, want %d; %v: %s%s", status, want, err, stdout.String(), stderr.String())
		}
	}
	if verify(exitOK); !got.Intact || got.Records != 2 || len(got.Problems) > 0 {
		t.Errorf("after two runs: %+v", got)
	}
	text := must.Get(os.ReadFile(log))(t)
	first, _, _ := bytes.Cut(text, []byte("\n"))
	for what, changed := range map[string][]byte{
		"an edited line":    bytes.Replace(text, []byte("started"), []byte("stopped"), 1),
		"a line cut off":    append(first, '\n'),
		"a reordered line":  append(append(bytes.Clone(text[len(first)+1:]), first...), '\n'),
		"an escape":         append(bytes.Clone(text), "\x1b]0;title\a{}\n"...),
		"everything is cut": nil,
	} {
		must.Do(t, os.WriteFile(log, changed, 0o600))
		if verify(exitFailure); got.Intact || len(got.Problems) == 0 {
			t.Errorf("%s: %+v", what, got)
		}
		if said := command(t, exitFailure, "audit", "verify", log); !strings.Contains(said, log) || !strings.Contains(said, "tether-host: the log was changed or damaged") || strings.Contains(said, "\x1b") {
			t.Errorf("%s: %q", what, said)
		}
	}
}
