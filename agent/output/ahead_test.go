package output_test

import (
	"testing"

	"tether/agent/output"
)

// Screens outlive the daemon in their holders: another version reads and writes the same.
func TestStoredScreensKeepTheirForm(t *testing.T) {
	for name, text := range map[string]string{
		"not examined": `{"v":1,"cols":80,"rows":24,"replay":"G1tI"}`,
		"examined":     `{"v":1,"cols":80,"rows":24,"replay":"G1tI","judged":true}`,
		"masked":       `{"v":1,"cols":80,"rows":24,"replay":"G1tI","judged":true,"outward":"G1tK"}`,
	} {
		at, ok := output.ParseScreen([]byte(text), 7)
		if !ok || at.Raw != 7 || at.Size != (output.Size{Cols: 80, Rows: 24}) || string(at.Replay) != "\x1b[H" || !at.Exact {
			t.Errorf("%s: read as %+v, %v", name, at, ok)
		}
		if again, err := at.Marshal(); err != nil || string(again) != text {
			t.Errorf("%s: written as %s, %v", name, again, err)
		}
	}
	if _, ok := output.ParseScreen([]byte(`{"v":2,"cols":80,"rows":24}`), 0); ok {
		t.Error("a screen of an unknown version was read")
	}
}
