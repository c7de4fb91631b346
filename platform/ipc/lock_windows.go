package ipc

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// lockedByte is the locked place in the file: beyond all content, because others cannot
// read locked bytes.
const lockedByte = 1 << 30

// Held is a lock held by this process until Close, or until the process ends in any way.
type Held struct{ file *os.File }

// Lock takes the lock at path, creating the file if needed, and writes this process's
// number into it. It does not wait: if another process holds the lock, or this one does
// already, it returns a *LockedError.
func Lock(path string) (*Held, error) {
	f, err := openShared(path)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	at := windows.Overlapped{Offset: lockedByte}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if err != nil {
		defer f.Close()
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
			return nil, &LockedError{Path: path, Pid: readPid(f)}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := writePid(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("write lock: %w", err)
	}
	return &Held{f}, nil
}

// openShared opens a file so that it can be removed meanwhile, as on other systems.
func openShared(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// Close gives the lock up.
func (h *Held) Close() error {
	at := windows.Overlapped{Offset: lockedByte}
	return errors.Join(windows.UnlockFileEx(windows.Handle(h.file.Fd()), 0, 1, 0, &at), h.file.Close())
}
