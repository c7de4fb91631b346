// Package rawio reads and writes sockets and terminals without telling Go's scheduler. On Linux a system call that cannot block needs no
// scheduler: an ordinary one wakes the runtime's monitor thread after each silence, and loses its processor when it takes more than 20 µs.
// With all sockets in the path of a key and of output like this, an echo takes a seventh less time, and coloured output a tenth less CPU
// (docs/PERFORMANCE.md). On other systems everything is as usual.
package rawio

import "net"

// A Listener wraps the connections of another one, see [Wrap].
type Listener struct{ net.Listener }

// Accept implements net.Listener.
func (l Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Wrap(conn), nil
}
