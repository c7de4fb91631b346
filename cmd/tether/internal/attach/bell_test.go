package attach

import (
	"os"
	"testing"
)

// A bell waits for the end of the control sequence that is being printed.
func TestBellWaitsForASequence(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s := &Session{opts: Options{Out: out}, interactive: true}
	if err := s.print([]byte("a\x1b[")); err != nil {
		t.Fatal(err)
	}
	s.ring("<bell>")
	if err := s.print([]byte("1mb")); err != nil {
		t.Fatal(err)
	}
	s.ring("<again>")
	if got, _ := os.ReadFile(out.Name()); string(got) != "a\x1b[1mb<bell><again>" {
		t.Errorf("printed %q", got)
	}
}
