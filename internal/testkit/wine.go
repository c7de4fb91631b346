package testkit

import "testing"

// NotOnWine skips a test of what Wine cannot do, in make test-windows; on Windows itself it runs. docs/PLATFORMS.md lists each.
func NotOnWine(t testing.TB, why string) {
	t.Helper()
	if onWine {
		t.Skipf("Wine: %s", why)
	}
}
