package testkit

import (
	"path/filepath"
	"testing"
)

// NotOnWine skips a test of what Wine cannot do, in make test-windows; on Windows itself it runs. docs/PLATFORMS.md lists each.
func NotOnWine(t testing.TB, why string) {
	t.Helper()
	if onWine {
		t.Skipf("Wine: %s", why)
	}
}

// Why a test is not for Windows. What such a test is about is tested there by one of its own, with Windows in its name.
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
