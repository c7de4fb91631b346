package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"tether/internal/testkit/must"
)

// The ports from firstPort on, which no tested system assigns automatically: Linux
// assigns ports from 32768, macOS and Windows from 49152.
const (
	firstPort = 20000
	ports     = 12000
)

// Listen listens on a loopback port that a test can close and listen on again. A port
// that the system chose could belong to another program by then, because the system
// assigns such ports to listeners and connections.
func Listen() (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports))); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// given are the ports that FreePort has returned.
var given sync.Map

// FreePort returns a free loopback port, as Listen uses, for a program that is told where
// to listen. It returns no port twice.
func FreePort(t testing.TB) int {
	t.Helper()
	for {
		l := must.Get(Listen())(t)
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if _, again := given.LoadOrStore(port, true); !again {
			return port
		}
	}
}
