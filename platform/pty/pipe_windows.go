package pty

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/windows"
)

// pipeBuffer is how much the kernel keeps between this process and the console, in bytes,
// each way.
const pipeBuffer = 64 << 10

// pipes are numbered within the process.
var pipes atomic.Uint64

// pipe makes a pipe between this process and a console: ours is served by the runtime's
// poller, so that waiting holds no thread and Close wakes; theirs is an ordinary one, as
// CreatePseudoConsole wants it. Anonymous pipes cannot be both. Its name is this
// process's alone: it must not exist yet, takes one client, and that is there at once.
func pipe(access uint32, theirAccess uint32) (ours *os.File, theirs windows.Handle, err error) {
	name := fmt.Sprintf(`\\.\pipe\tether-pty-%d-%d`, os.Getpid(), pipes.Add(1))
	wide, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, 0, err
	}
	server, err := windows.CreateNamedPipe(wide, access|windows.FILE_FLAG_OVERLAPPED|windows.FILE_FLAG_FIRST_PIPE_INSTANCE,
		windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, 1, pipeBuffer, pipeBuffer, 0, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("create pipe: %w", err)
	}
	theirs, err = windows.CreateFile(wide, theirAccess, 0, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		_ = windows.CloseHandle(server)
		return nil, 0, fmt.Errorf("open pipe: %w", err)
	}
	return os.NewFile(uintptr(server), name), theirs, nil
}

var peekNamedPipe = windows.NewLazySystemDLL("kernel32.dll").NewProc("PeekNamedPipe")

// available returns how many bytes can be read from a pipe at once.
func available(h windows.Handle) (n uint32, err error) {
	ok, _, err := peekNamedPipe.Call(uintptr(h), 0, 0, 0, uintptr(unsafe.Pointer(&n)), 0)
	if ok == 0 {
		return 0, err
	}
	return n, nil
}
