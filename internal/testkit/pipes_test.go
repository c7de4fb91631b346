package testkit_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestPipes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewPipes()
		go func() {
			c, err := l.Accept()
			if err == nil {
				_, _ = c.Write([]byte("x")) // the reader shows whether it arrived
				c.Close()
			}
		}()
		c := must.Get(l.Dial())(t)
		defer c.Close()
		buf := make([]byte, 2)
		if n, err := c.Read(buf); n != 1 || buf[0] != 'x' || err != nil {
			t.Errorf("read %q, %v", buf[:n], err)
		}
		check.OK(t, errors.Join(l.Close(), l.Close()))
		if _, err := l.Dial(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial after the end: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after the end: %v", err)
		}
	})
}
