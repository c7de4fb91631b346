//go:build linux || darwin

package ipc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Listener accepts connections of this user's programs only. It is a net.Listener; its
// methods are safe for concurrent use.
type Listener struct {
	socket  *net.UnixListener
	lock    *Held
	refused atomic.Int64
}

// Listen serves the socket at path, an absolute path of at most MaxPath bytes. Its
// directory is made if missing and must belong to this user alone. The lock path+".lock"
// is held until Close, so that a second Listen gets a *LockedError; a socket that a
// killed process has left is removed under that lock, one that answers never.
func Listen(path string) (*Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if err := privateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := Lock(path + ".lock")
	if err != nil {
		return nil, err
	}
	socket, err := bind(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Listener{socket: socket, lock: lock}, nil
}

func bind(path string) (*net.UnixListener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // before that only the directory keeps others out
		l.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// removeStale removes a socket that nobody serves. It dials first: a process that serves
// the path without knowing our lock must not lose its door. Anything that is not a socket
// stays.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect old socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("another process serves %s without holding its lock", path)
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("inspect old socket: %w", err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove old socket: %w", err)
	}
	return nil
}

// privateDir makes the directory, or makes sure that it is one, belongs to this user and
// is closed to all others. It is secret.Dir, which would bring more into the memory of
// each holder than it is worth.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create the socket's directory: %w", err)
	}
	info, err := os.Lstat(dir) // a link could be turned elsewhere by its owner
	if err != nil {
		return fmt.Errorf("inspect the socket's directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !ok || int(stat.Uid) != os.Getuid():
		return fmt.Errorf("directory %s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("directory %s is open to other users (mode %04o); make it private: chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// Accept waits for the next connection of a program of this user. Others are closed at
// once and counted. After Close it returns an error that is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.socket.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if checkPeer(conn, os.Getuid()) == nil {
			return conn, nil
		}
		l.refused.Add(1)
		conn.Close()
	}
}

// Refused returns how many connections were not let in because they came from another
// user.
func (l *Listener) Refused() int64 { return l.refused.Load() }

// Addr returns the address of the socket.
func (l *Listener) Addr() net.Addr { return l.socket.Addr() }

// Close stops listening, wakes Accept, removes the socket and then gives up the lock.
// Accepted connections stay.
func (l *Listener) Close() error {
	err := l.socket.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(err, l.lock.Close())
}

// Leave is Close that keeps the lock until the process ends.
func (l *Listener) Leave() error {
	if err := l.socket.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Dial connects to the socket at path. The error is ErrNotRunning if there is none or
// nobody serves it. It makes sure that the other side runs as this user as well.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, fmt.Errorf("%w at %s", ErrNotRunning, path)
	}
	if err != nil {
		return nil, err
	}
	if err := checkPeer(conn.(*net.UnixConn), os.Getuid()); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return conn, nil
}

// checkPeer asks the kernel whether the process at the other end ran as this user when it
// connected or listened.
func checkPeer(conn *net.UnixConn, want int) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var uid int
	var asked error
	if err := raw.Control(func(fd uintptr) { uid, asked = peerUID(int(fd)) }); err != nil {
		return err
	}
	if asked != nil {
		return fmt.Errorf("look up the peer's user: %w", asked)
	}
	if uid != want {
		return fmt.Errorf("the peer is user %d, not %d", uid, want)
	}
	return nil
}
