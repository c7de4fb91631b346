package ipc

import (
	"errors"
	"net"
	"syscall"
)

// ErrNoPeer means that the system does not report which process opened a connection.
var ErrNoPeer = errors.New("the system does not report the connecting process")

// Peer is the process that opened a connection which a Listener accepted, as the kernel
// noted it then. It may have handed the connection on, or ended; Close releases the
// handle that reserves its number.
type Peer struct {
	Pid    int
	handle int // Linux: a pidfd, else -1
}

// PeerOf returns the process that opened a connection.
func PeerOf(conn net.Conn) (Peer, error) {
	none := Peer{handle: -1}
	s, ok := conn.(syscall.Conn)
	if !ok {
		return none, ErrNoPeer
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return none, err
	}
	p := none
	var asked error
	if err := raw.Control(func(fd uintptr) { p, asked = peerOf(fd) }); err != nil {
		return none, err
	}
	switch {
	case asked != nil:
		return none, asked
	case p.Pid <= 0: // in a namespace that is not ours
		p.Close()
		return none, ErrNoPeer
	}
	return p, nil
}

// Gone reports whether the process is known to have ended. If the kernel gives no handle
// this is never known: compare the start time of the process with that number.
func (p Peer) Gone() bool { return p.gone() }

// Close gives the handle back.
func (p Peer) Close() { p.close() }
