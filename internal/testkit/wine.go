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

// Unix skips a test on Windows, as long as that is not what it is about: its programs are those of a unix shell, or it counts on a
// terminal that hands bytes on as they are, where Windows' console paints a picture. Package platform/pty and the tests named
// …Windows… show the same of programs on a console.
func Unix(t testing.TB) {
	t.Helper()
	if filepath.Separator == '\\' {
		t.Skip("not for Windows: its programs are a unix shell's, or its bytes a unix terminal's")
	}
}
