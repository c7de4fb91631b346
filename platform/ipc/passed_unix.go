//go:build linux || darwin

package ipc

import (
	"net"
	"syscall"

	"tether/platform/rawio"
)

// WritePassing writes p to conn and, if conn supports it, passes a copy of what's
// descriptor along. what may be nil, or closed.
func WritePassing(conn net.Conn, p []byte, what Passable) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok || what == nil {
		_, err := conn.Write(p)
		return err
	}
	raw, err := what.SyscallConn()
	if err != nil {
		return err
	}
	closed := raw.Control(func(fd uintptr) {
		var n int
		if n, _, err = socket.WriteMsgUnix(p, syscall.UnixRights(int(fd)), nil); err == nil && n < len(p) {
			_, err = conn.Write(p[n:])
		}
	})
	if closed != nil {
		_, err = conn.Write(p)
	}
	return err
}

// Read also takes the descriptor that arrives with the data. It is closed in programs
// that this process starts.
func (r *Receiver) Read(p []byte) (int, error) {
	socket, ok := r.Conn.(*net.UnixConn)
	if !ok || r.Over {
		return r.Conn.Read(p)
	}
	var rights [64]byte
	n, m, _, _, err := socket.ReadMsgUnix(p, rights[:]) // sets close-on-exec
	messages, _ := syscall.ParseSocketControlMessage(rights[:m])
	for i := range messages {
		files, _ := syscall.ParseUnixRights(&messages[i])
		for _, file := range files {
			r.To.put(uintptr(file))
		}
	}
	return max(n, 0), err // recvmsg returns -1 with an error, for which bufio panics
}

// put takes over a descriptor. A second one is closed.
func (d *Passed) put(file uintptr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.has {
		closeDescriptor(file)
		return
	}
	d.file, d.has = file, true
}

func writeNow(file uintptr, p []byte) int {
	if len(p) == 0 {
		return 0
	}
	n, _ := rawio.Write(file, p) // there is room, or not
	return n
}

func closeDescriptor(file uintptr) { syscall.Close(int(file)) }
