package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports that no tested system assigns automatically: Linux begins with 32768, macOS and Windows with 49152.
const (
	firstPort = 20000
	ports     = 12000
)

// Listen listens on a port of loopback that can be closed and listened on again. A port that the system chose could be another program's by
// then, because the system assigns it to listeners and connections.
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

// FreePort is such a port, for a program that is told where to listen. It returns none twice.
func FreePort(t testing.TB) int {
	t.Helper()
	for {
		l, err := Listen()
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if _, again := given.LoadOrStore(port, true); !again {
			return port
		}
	}
}
