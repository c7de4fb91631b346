package testkit

import (
	"path/filepath"
	"testing"
)

// NotOnWine skips a test of a feature that Wine lacks, in make test-windows, which lists
// these tests with their reasons. On Windows itself the test runs.
func NotOnWine(t testing.TB, why string) {
	t.Helper()
	if onWine {
		t.Skipf("Wine: %s", why)
	}
}

// Slow is a reason for NotOnWine: hundreds of connections or commands that show nothing
// of Windows take minutes there.
const Slow = "it takes long there, and its code is the same on all systems"

// Reasons for Unix. On Windows, a test with Windows in its name covers the same subject.
const (
	Programs = "its programs are those of a unix shell"
	Bytes    = "the console of Windows does not pass on the child's bytes: it renders a screen"
	Modes    = "files have modes there, not access lists"
	Paths    = "its paths are those of a unix system"
)

// Unix skips a test on Windows, for the reason why.
func Unix(t testing.TB, why string) {
	t.Helper()
	if filepath.Separator == '\\' {
		t.Skip("not for Windows: " + why)
	}
}
