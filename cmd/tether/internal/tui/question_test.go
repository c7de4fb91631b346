package tui

import (
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"tether/cmd/tether/internal/display"
)

// A question that is cut, or hidden behind an error, is not shown whole: it cannot be approved here, however large the window is.
func TestUIQuestionIsNotAllShown(t *testing.T) {
	f := threeTerminals()
	f.state.questions[0].Line = strings.Repeat("echo harmless; ", 1000) + "rm -rf ~"
	m := press(step(screenOf(f), tea.WindowSizeMsg{Width: 200, Height: 1000}), "a")
	if text := m.picture(); strings.Contains(text, "rm -rf") || strings.Contains(text, "y approve") || !strings.Contains(text, "tether approvals q-1") {
		t.Errorf("of a long command is shown:\n%s", text)
	}
	if m = press(m, "y"); len(f.acts) > 0 || m.asking != askApprove {
		t.Errorf("did %q", f.acts)
	}
	if text := strings.Join(display.Approval(f.state.questions[0], 0), "\n"); !strings.Contains(text, "rm -rf") || strings.Contains(text, "more bytes") {
		t.Error("asked for by its id, it is not shown in full")
	}
	f = threeTerminals()
	m = step(press(screenOf(f), "a"), state{err: errors.New("nobody listens")})
	if m = press(m, "y"); len(f.acts) > 0 {
		t.Errorf("behind an error: did %q", f.acts)
	}
}
