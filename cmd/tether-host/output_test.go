package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// unwritable returns a file for standard output that refuses all writes.
func unwritable(t *testing.T) *os.File {
	t.Helper()
	f := must.Get(os.Open(os.DevNull))(t) // for reading only
	t.Cleanup(func() { f.Close() })
	return f
}

// A command that cannot write its output says so and fails, whatever it does besides.
func TestOutputThatCannotBeWritten(t *testing.T) {
	testkit.Leaks(t)
	dir := filepath.Join(t.TempDir(), "state") // made by the host, for its user alone
	tokens, own := filepath.Join(dir, "tokens.json"), filepath.Join(t.TempDir(), "own.token")
	r := start(t, "--tokens", tokens, "--token-file", own)
	at := []string{"--url", r.url, "--token-file", own}
	stored := []string{"--tokens", tokens}
	for _, c := range []struct {
		line string
		more []string
	}{
		{"--help", nil}, {"--version", nil}, {"token", nil}, {"token create --help", nil},
		{"--listen 127.0.0.1:0", stored},
		{"token create laptop", stored}, {"token ls", stored}, {"token ls --json", stored}, {"token revoke laptop", stored},
		{"token create laptop --role observer", stored},
		{"people ls", stored}, {"people off", stored}, {"people rm laptop", stored}, {"group ls", stored}, {"grants ls", stored}, {"pending", stored},
		{"link", at}, {"shells", at}, {"terminals", at},
	} {
		var stderr bytes.Buffer
		status := run(t.Context(), append(strings.Fields(c.line), c.more...), unwritable(t), &stderr)
		if status != exitFailure || !strings.HasPrefix(stderr.String(), "tether-host: write to standard output: ") {
			t.Errorf("tether-host %s: status %d: %s", c.line, status, stderr.String())
		}
	}
}
