package testkit

import (
	"io"
	"testing"

	"tether/internal/testkit/check"
)

// A child that has died may still be killed and ended, as a terminal does that waits for
// its output. The first exit counts.
func TestChildDiesOnce(t *testing.T) {
	c := NewChild()
	c.Die(3)
	check.OK(t, c.Kill(t.Context(), 0))
	c.End(0)
	c.Die(1)
	if exit := c.Wait(); exit.Code != 3 {
		t.Errorf("exit code %d, want 3", exit.Code)
	}
	if err := c.WaitReadable(); err != io.EOF {
		t.Errorf("the output has ended with %v, want %v", err, io.EOF)
	}
}
