package testkit

import (
	"path/filepath"
	"testing"
)

// NotOnWine skips a test of a feature that Wine lacks, in make test-windows; on Windows itself it runs. docs/PLATFORMS.md lists each.
func NotOnWine(t testing.TB, why string) {
	t.Helper()
	if onWine {
		t.Skipf("Wine: %s", why)
	}
}

// Why a test is not for Windows. A separate test, with Windows in its name, covers the same subject there.
const (
	Programs = "its programs are those of a unix shell"
	Bytes    = "a terminal hands its bytes on as they are, where Windows' console paints a picture"
	Modes    = "files have modes there, not access lists"
	Paths    = "its paths are those of a unix system"
)

// Unix skips a test on Windows.
func Unix(t testing.TB, why string) {
	t.Helper()
	if filepath.Separator == '\\' {
		t.Skip("not for Windows: " + why)
	}
}
