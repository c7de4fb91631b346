package rawio_test

import (
	"net"
	"testing"

	"tether/platform/rawio"
)

// Wrap returns a connection that is no socket unchanged.
func TestWrapOther(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if rawio.Wrap(a) != a {
		t.Error("a pipe is wrapped")
	}
}
