package rawio_test

import (
	"net"
	"testing"

	"tether/platform/rawio"
)

// What is no socket stays as it is.
func TestWrapOther(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if rawio.Wrap(a) != a {
		t.Error("a pipe is wrapped")
	}
}
