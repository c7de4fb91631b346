package ipc

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// backlog is the number of clients that can connect before the first of them is accepted;
// further ones wait in Dial. One system call can wait for 64 handles.
const backlog = 8

// place is an instance of a named pipe that waits for its one client. It must not be
// copied: the kernel writes into pending.
type place struct {
	handle  windows.Handle
	event   windows.Handle // set when a client has connected
	pending windows.Overlapped
}

// addPlace makes one more.
func (l *Listener) addPlace(flags uint32) error {
	name, err := windows.UTF16PtrFromString(l.name)
	if err != nil {
		return err
	}
	p := &place{}
	p.handle, err = windows.CreateNamedPipe(name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED|flags,
		windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, windows.PIPE_UNLIMITED_INSTANCES, pipeBuffer, pipeBuffer, 0, l.rights)
	if err != nil {
		return fmt.Errorf("create pipe: %w", err)
	}
	if p.event, err = windows.CreateEvent(nil, 1, 0, nil); err != nil {
		_ = windows.CloseHandle(p.handle)
		return err
	}
	if err := p.listen(); err != nil {
		p.close()
		return fmt.Errorf("listen at pipe: %w", err)
	}
	l.places = append(l.places, p)
	return nil
}

func (p *place) listen() error {
	p.pending.HEvent = p.event
	err := windows.ConnectNamedPipe(p.handle, &p.pending)
	switch {
	case errors.Is(err, windows.ERROR_IO_PENDING):
		return nil
	case err == nil, errors.Is(err, windows.ERROR_PIPE_CONNECTED), errors.Is(err, windows.ERROR_NO_DATA):
		return windows.SetEvent(p.event) // a client was faster, and may have gone again
	}
	return err
}

var peekNamedPipe = windows.NewLazySystemDLL("kernel32.dll").NewProc("PeekNamedPipe")

// take gives up the place and returns the client's handle, unless the client has gone
// again without having said anything.
func (p *place) take() (handle windows.Handle, there bool) {
	if ok, _, _ := peekNamedPipe.Call(uintptr(p.handle), 0, 0, 0, 0, 0); ok == 0 {
		p.close()
		return 0, false
	}
	_ = windows.CloseHandle(p.event)
	return p.handle, true
}

// close gives the place up, with its client if it has one.
func (p *place) close() {
	if windows.CancelIoEx(p.handle, &p.pending) == nil {
		var n uint32
		_ = windows.GetOverlappedResult(p.handle, &p.pending, &n, true) // until then the kernel may write into pending
	}
	_ = windows.CloseHandle(p.event)
	_ = windows.CloseHandle(p.handle)
}
