package ipc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"tether/platform/secret"
)

// On Windows the door is a named pipe that only this user's programs may open: Windows
// itself refuses others. Windows also has Unix sockets, but only the folder's rights
// decide who may connect to one, and the peer cannot be identified. The pipe's name
// cannot be guessed; a file at the path of the socket contains it and exists exactly when
// a socket would.

// MaxPath is the longest path in bytes; Windows without long paths takes no more than 259
// UTF-16 units.
const MaxPath = 259

// pipePrefix begins the name of each pipe of ours.
const pipePrefix = `\\.\pipe\tether-`

// maxName bounds the content of a file with a pipe's name, in bytes.
const maxName = 200

// pipeBuffer is how much the kernel keeps each way, in bytes, before a writer waits.
const pipeBuffer = 64 << 10

// Listener accepts connections of this user's programs only. It is a net.Listener; its
// methods are safe for concurrent use.
type Listener struct {
	path, name string
	rights     *windows.SecurityAttributes
	lock       *Held
	stop       windows.Handle // event: Close was called
	closed     chan struct{}
	once       sync.Once
	err        error // of Close

	accepting sync.Mutex // one Accept at a time
	places    []*place   // for the next clients; there are always some, so that the name stays ours
}

// Listen opens the door at path, an absolute path of at most MaxPath bytes. Its directory
// is made if missing and must belong to this user alone. The lock path+".lock" is held
// until Close, so that a second Listen gets a *LockedError; the file of a killed process
// is replaced under that lock.
func Listen(path string) (*Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if err := secret.Dir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("the socket's directory: %w", err)
	}
	lock, err := Lock(path + ".lock")
	if err != nil {
		return nil, err
	}
	l, err := bind(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l.lock = lock
	return l, nil
}

func bind(path string) (l *Listener, err error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l = &Listener{path: path, name: pipePrefix + rand.Text(), closed: make(chan struct{})}
	if l.rights, err = onlyUser(); err != nil {
		return nil, err
	}
	if l.stop, err = windows.CreateEvent(nil, 1, 0, nil); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	for first := uint32(windows.FILE_FLAG_FIRST_PIPE_INSTANCE); err == nil && len(l.places) < backlog; first = 0 {
		err = l.addPlace(first)
	}
	if err == nil {
		err = secret.WriteFile(path, []byte(l.name)) // as a whole: nobody sees a part of the name
	}
	if err != nil {
		l.release()
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// removeStale removes the file of a killed process. It dials first: a process that serves
// the path without knowing our lock must not lose its door. A file without a pipe's name
// stays.
func removeStale(path string) error {
	_, err := readName(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	conn, err := Dial(context.Background(), path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("another process serves %s without holding its lock", path)
	}
	if !errors.Is(err, ErrNotRunning) {
		return fmt.Errorf("inspect old socket: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove old socket: %w", err)
	}
	return nil
}

// readName returns the name that the file tells.
func readName(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	text := []byte(nil)
	if info.Mode().IsRegular() && info.Size() <= maxName {
		if text, err = read(path); err != nil {
			return "", err
		}
	}
	rest, ok := strings.CutPrefix(string(text), pipePrefix)
	if !ok || strings.ContainsAny(rest, `\/`) {
		return "", fmt.Errorf("%s exists and is not a socket", path)
	}
	return string(text), nil
}

func read(path string) ([]byte, error) {
	f, err := secret.OpenRead(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxName))
}

// onlyUser are the rights of the pipe: this user owns it and may do everything, nobody
// else anything. Inheritance is off.
func onlyUser() (*windows.SecurityAttributes, error) {
	sid, err := userSID()
	if err != nil {
		return nil, err
	}
	s, err := windows.SecurityDescriptorFromString(fmt.Sprintf("O:%[1]vD:P(A;;GA;;;%[1]v)", sid))
	if err != nil {
		return nil, fmt.Errorf("permissions of the socket: %w", err)
	}
	rights := &windows.SecurityAttributes{SecurityDescriptor: s}
	rights.Length = uint32(unsafe.Sizeof(*rights))
	return rights, nil
}

func userSID() (*windows.SID, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("look up the user of this process: %w", err)
	}
	return user.User.Sid, nil
}

// Accept waits for the next connection of a program of this user. After Close it returns
// an error that is net.ErrClosed. It holds a thread while it waits.
func (l *Listener) Accept() (net.Conn, error) {
	l.accepting.Lock()
	defer l.accepting.Unlock()
	for {
		p, err := l.await()
		if l.isClosed() {
			err = net.ErrClosed
		}
		if err != nil {
			return nil, &net.OpError{Op: "accept", Net: "pipe", Addr: l.Addr(), Err: err}
		}
		if handle, there := p.take(); there { // otherwise the client has gone again
			return newConn(handle, l.name), nil
		}
	}
}

func (l *Listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// await returns a place to which a client has connected, and provides its successor.
func (l *Listener) await() (*place, error) {
	for len(l.places) < backlog { // one could not be made before
		if err := l.addPlace(0); err != nil {
			return nil, err
		}
	}
	events := []windows.Handle{l.stop}
	for _, p := range l.places {
		events = append(events, p.event)
	}
	which, err := windows.WaitForMultipleObjects(events, false, windows.INFINITE)
	if err != nil {
		return nil, err
	}
	n := int(which - windows.WAIT_OBJECT_0)
	if n == 0 {
		return nil, net.ErrClosed
	}
	taken := l.places[n-1]
	l.places = slices.Delete(l.places, n-1, n)
	return taken, l.addPlaceAfter(taken)
}

// addPlaceAfter makes the successor of a place; if it cannot, the client that has taken
// it is sent away.
func (l *Listener) addPlaceAfter(taken *place) error {
	err := l.addPlace(0)
	if err != nil {
		taken.close()
	}
	return err
}

// Refused returns how many connections were not let in: none that this process knows of,
// since Windows refuses them.
func (l *Listener) Refused() int64 { return 0 }

// Addr returns the address of the door.
func (l *Listener) Addr() net.Addr { return addr(l.path) }

// Close stops listening, wakes Accept, removes the file and then gives up the lock.
// Accepted connections stay.
func (l *Listener) Close() error { return l.leave(l.lock.Close) }

// Leave is Close, but keeps the lock until the process ends.
func (l *Listener) Leave() error { return l.leave(func() error { return nil }) }

func (l *Listener) leave(then func() error) error {
	l.once.Do(func() {
		close(l.closed)
		_ = windows.SetEvent(l.stop)
		l.accepting.Lock() // Accept has returned
		defer l.accepting.Unlock()
		if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.err = err
		}
		l.release()
		l.err = errors.Join(l.err, then())
	})
	return l.err
}

func (l *Listener) release() {
	_ = windows.CloseHandle(l.stop)
	for _, p := range l.places {
		p.close()
	}
}

const (
	// busyLook is how long Dial waits between two tries when clients have just taken all
	// places, or the file is being made or removed.
	busyLook = 2 * time.Millisecond
	// changing is how long it may be that.
	changing = time.Second
)

// Dial connects to the door at path. The error is ErrNotRunning if there is none or
// nobody serves it. It makes sure that the pipe belongs to this user, and lets the other
// side learn this process's user but not impersonate it.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		conn, err := dial(path)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, windows.ERROR_PIPE_BUSY), isChanging(err) && time.Since(began) < changing:
			timer := time.NewTimer(busyLook)
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w at %s", ErrNotRunning, path)
		default:
			return nil, err
		}
	}
}

// isChanging reports whether another process is just making or removing the file.
func isChanging(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_DELETE_PENDING) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

func dial(path string) (net.Conn, error) {
	name, err := readName(path)
	if err != nil {
		return nil, err
	}
	wide, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(wide, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_OVERLAPPED|windows.SECURITY_SQOS_PRESENT|windows.SECURITY_IDENTIFICATION, 0)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: addr(path), Err: err}
	}
	if err := checkOwner(h); err != nil {
		_ = windows.CloseHandle(h)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newConn(h, path), nil
}

// checkOwner asks Windows whose pipe this is.
func checkOwner(h windows.Handle) error {
	rights, err := windows.GetSecurityInfo(h, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("look up the peer's user: %w", err)
	}
	owner, _, err := rights.Owner()
	if err != nil {
		return fmt.Errorf("look up the peer's user: %w", err)
	}
	user, err := userSID()
	if err != nil {
		return err
	}
	if !owner.Equals(user) {
		return fmt.Errorf("the peer is user %v, not %v", owner, user)
	}
	return nil
}
