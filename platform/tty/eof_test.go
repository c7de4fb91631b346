package tty_test

import (
	"path/filepath"
	"testing"

	"tether/platform/tty"
)

func TestEndOfInput(t *testing.T) {
	want := map[bool]string{true: "\x04", false: "\x04\x04"}
	if filepath.Separator == '\\' {
		want = map[bool]string{true: "\x1a\r", false: "\r\x1a\r"}
	}
	for atLineStart, want := range want {
		if got := string(tty.EndOfInput(atLineStart)); got != want {
			t.Errorf("EndOfInput(%t) = %q, want %q", atLineStart, got, want)
		}
	}
}
