//go:build !darwin && !windows

package browser_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/browser"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	opened := filepath.Join(dir, "opened")
	must.Do(t, os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\nprintf %s \"$1\" >"+opened+"\n"), 0o700))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	const url = "http://127.0.0.1:1/launch#a&b='c"
	if err := browser.Open(url); !errors.Is(err, browser.ErrNone) {
		t.Errorf("without a desktop: %v", err)
	}
	t.Setenv("DISPLAY", ":0")
	for _, bad := range []string{"file:///etc/passwd", "--help", ""} {
		if err := browser.Open(bad); err == nil {
			t.Errorf("%q was opened", bad)
		}
	}
	must.Do(t, browser.Open(url))
	testkit.Eventually(t, testkit.Patience, "the URL is opened as it is", func() bool {
		text, _ := os.ReadFile(opened)
		return string(text) == url
	})
}
