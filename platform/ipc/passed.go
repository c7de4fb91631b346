package ipc

import (
	"net"
	"sync"
	"syscall"
)

// Passable has a descriptor that can be passed to another process, as an [os.File] has.
type Passable = syscall.Conn

// Passed is a descriptor that another process has passed, for output only. The runtime's
// poller does not know it, so input on it wakes nobody. The zero value holds none; its
// methods may be called concurrently.
type Passed struct {
	mu   sync.Mutex // held across a write, which does not block
	file uintptr
	has  bool
}

// Has reports whether there is a descriptor.
func (d *Passed) Has() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.has
}

// TryWrite writes as much of p as there is room for now, perhaps nothing; without a
// descriptor it writes nothing. It reports no errors. It does not wait if the other
// process has made the descriptor non-blocking, as the Go runtime does for those that it
// polls.
func (d *Passed) TryWrite(p []byte) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.has {
		return 0
	}
	return writeNow(d.file, p)
}

// Control calls f with the descriptor, which is valid until f returns; f must not block.
// It returns false if there is none.
func (d *Passed) Control(f func(fd uintptr)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.has {
		f(d.file)
	}
	return d.has
}

// Close closes the descriptor. A second call does nothing.
func (d *Passed) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.has {
		d.has = false
		closeDescriptor(d.file)
	}
}

// Receiver is a connection on which a descriptor may come.
type Receiver struct {
	net.Conn
	To   *Passed // gets the first one; others are closed
	Over bool    // none comes any more; owned by the goroutine that reads
}
