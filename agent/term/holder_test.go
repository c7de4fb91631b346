package term_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/platform/pty"
)

// vault is a holder without a process: it outlives the pools of a test and keeps their
// state. It lives in synctest bubbles.
type vault struct {
	limit int // bytes of the log

	mu      sync.Mutex
	moved   sync.Cond // of mu: anything below
	log     []byte
	base    int64
	taken   int64
	keep    int64 // the pool's last one, -1 if none
	meta    []byte
	notes   []output.Note
	screens []output.Note
	blind   bool // it is of a program that knows no screens
	exit    *pty.Exit
	exitAt  time.Time
	size    pty.Size
	forgot  bool
	dead    bool // killed
	current *wire
	typed   string
}

func newVault(limit int) *vault {
	v := &vault{limit: limit, keep: -1, size: pty.DefaultSize}
	v.moved.L = &v.mu
	return v
}

// wire is a pool's connection to a vault.
type wire struct {
	v         *vault
	pos       int64
	closed    bool
	streaming bool
}

// connect is the result of a daemon's Spawn or Dial. An earlier connection ends.
func (v *vault) connect() (*wire, term.Past) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.current != nil {
		v.current.closed = true
	}
	v.current = &wire{v: v}
	v.moved.Broadcast()
	p := term.Past{
		ID: "pty-held", Started: time.Unix(1e9, 0), Meta: v.meta, Exited: v.exit != nil,
		Log: output.Past{
			Size: v.size, Base: v.base, End: v.end(), Taken: v.taken, Window: 64,
			Notes: slices.Clone(v.notes), Screens: slices.Clone(v.screens),
		},
	}
	return v.current, p
}

func (v *vault) end() int64 { return v.base + int64(len(v.log)) }

// print is output of the child. Bytes beyond the log's bound are dropped.
func (v *vault) print(p string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.log = append(v.log, p...)
	if over := len(v.log) - v.limit; over > 0 {
		v.log = v.log[over:]
		v.base += int64(over)
	}
	for len(v.notes) > 1 && v.notes[0].Off < v.base {
		v.notes = v.notes[1:]
	}
	for len(v.screens) > 0 && v.screens[0].Off < v.base {
		v.screens = v.screens[1:]
	}
	v.moved.Broadcast()
}

// ends is the end of the child.
func (v *vault) ends(code int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.exit, v.exitAt = &pty.Exit{Code: code}, time.Now()
	v.moved.Broadcast()
}

// kill is kill -9 of the holder.
func (v *vault) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = true
	v.current.closed = true
	v.moved.Broadcast()
}

// cut ends the connection, as the end of the daemon does.
func (l *wire) cut() {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.closed = true
	l.v.moved.Broadcast()
}

// leave ends the connection, then the daemon's terminals.
func (l *wire) leave(pool *term.Pool) {
	l.cut()
	synctest.Wait()
	pool.Close(context.Background())
}

var errCut = errors.New("cut")

type lostBytes struct{ from, to int64 }

func (e *lostBytes) Error() string               { return "bytes were lost" }
func (e *lostBytes) Gap() (from, to int64)       { return e.from, e.to }
func (l *wire) StreamFrom(off int64) error       { l.pos, l.streaming = off, true; return nil }
func (l *wire) Pid() int                         { return 7 }
func (l *wire) Close() error                     { l.cut(); return nil }
func (l *wire) Signal(string) error              { return nil }
func (l *wire) Keep(off int64) error             { return l.do(func(v *vault) { v.keep = off }) }
func (l *wire) SetMeta(p []byte) error           { return l.do(func(v *vault) { v.meta = p }) }
func (l *wire) Resize(s pty.Size) error          { return l.do(func(v *vault) { v.size = s }) }
func (l *wire) Forget(ctx context.Context) error { return l.do(func(v *vault) { v.forgot = true }) }

func (l *wire) Checkpoint(off int64, note []byte) error {
	return l.do(func(v *vault) { v.notes = append(v.notes, output.Note{Off: off, Text: note}) })
}

func (l *wire) KeepsScreens() bool { return !l.v.blind }

func (l *wire) Screen(off int64, p []byte) error {
	return l.do(func(v *vault) {
		if off >= v.base {
			v.screens = append(v.screens, output.Note{Off: off, Text: p})
		}
	})
}

func (l *wire) Write(p []byte) (int, error) {
	return len(p), l.do(func(v *vault) { v.typed += string(p) })
}

func (l *wire) Kill(context.Context, time.Duration) error {
	err := l.do(func(*vault) {})
	if err == nil {
		l.v.ends(137)
	}
	return err
}

// do changes the vault unless the connection has ended.
func (l *wire) do(f func(*vault)) error {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	if l.closed {
		return errCut
	}
	f(l.v)
	return nil
}

func (l *wire) WaitReadable() error {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.v.taken = max(l.v.taken, l.pos)
	for l.pos >= l.v.end() {
		switch {
		case l.closed:
			return errCut
		case l.v.exit != nil:
			return io.EOF
		}
		l.v.moved.Wait()
	}
	if l.closed {
		return errCut
	}
	return nil
}

func (l *wire) Read(p []byte) (int, error) {
	if err := l.WaitReadable(); err != nil {
		return 0, err
	}
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	defer l.v.moved.Broadcast()
	if l.pos < l.v.base {
		e := &lostBytes{l.pos, l.v.base}
		l.pos = l.v.base
		return 0, e
	}
	n := copy(p[:min(len(p), 1+int(l.pos*7919%3000))], l.v.log[l.pos-l.v.base:])
	l.pos += int64(n)
	return n, nil
}

func (l *wire) Wait() pty.Exit {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	for !l.closed && (l.v.exit == nil || l.streaming && l.pos < l.v.end()) {
		l.v.moved.Wait()
	}
	if l.v.exit == nil || l.closed {
		return pty.Exit{Code: -1}
	}
	return *l.v.exit
}

func (l *wire) ExitedAt() (time.Time, int64) {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	if l.v.exit == nil || l.closed {
		return time.Time{}, 0
	}
	return l.v.exitAt, l.v.end()
}

func (l *wire) Gone() bool {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	return l.v.dead
}

func (v *vault) state() (meta string, notes int, forgot bool, keep int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return string(v.meta), len(v.notes), v.forgot, v.keep
}
