// Package rawio reads and writes sockets and terminals without telling Go's scheduler. On
// Linux a system call that cannot block does not need the scheduler. An ordinary system
// call wakes the runtime's monitor thread if the process was idle before, and its
// goroutine loses its processor when the call takes more than 20 µs. With rawio on all
// sockets in the path of a key and of output, an echo takes a seventh less time, and
// coloured output a tenth less CPU (docs/PERFORMANCE.md). On other systems reads and
// writes are ordinary.
package rawio

import "net"

// A Listener wraps the connections of another listener, see [Wrap].
type Listener struct{ net.Listener }

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Wrap(conn), nil
}
