package notify

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The text for Windows fits its fields, ends with a zero, and no character is cut in two.
func TestBalloon(t *testing.T) {
	d := balloon(7, 8, strings.Repeat("t", 62)+"😀", strings.Repeat("b", 253)+"€€€")
	if got := windows.UTF16ToString(d.infoTitle[:]); got != strings.Repeat("t", 62) {
		t.Errorf("title %q", got)
	}
	if got := windows.UTF16ToString(d.info[:]); got != strings.Repeat("b", 253)+"€€" {
		t.Errorf("body %q", got)
	}
	if d.infoTitle[63] != 0 || d.info[255] != 0 || windows.UTF16ToString(d.tip[:]) != "tether" {
		t.Error("a field does not end, or the tip is missing")
	}
	if want := map[uintptr]uint32{8: 976, 4: 956}[unsafe.Sizeof(uintptr(0))]; d.size != want || d.window != 7 || d.icon != 8 {
		t.Errorf("size %d, want %d; window %d, icon %d", d.size, want, d.window, d.icon)
	}
}

// Send shows a notification, or returns ErrUnsupported.
func TestSendOnWindows(t *testing.T) {
	if err := Send(t.Context(), "tether approvals", "agent bob asks to run: make"); err != nil && !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}
