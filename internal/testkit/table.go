package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// Table reads a file of testdata: one row per line, with tabs between columns. Empty
// lines and lines that begin with # are skipped. Columns missing at the end of a row are
// "". The test fails if a row has more columns, or if the file has fewer than least rows.
func Table(t testing.TB, file string, columns, least int) (rows [][]string) {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("testdata", file)))(t)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) > columns {
			t.Fatalf("%s: %q has %d columns, want at most %d", file, line, len(row), columns)
		}
		rows = append(rows, append(row, make([]string, columns-len(row))...))
	}
	if len(rows) < least {
		t.Errorf("%s has %d rows, want at least %d", file, len(rows), least)
	}
	return rows
}
