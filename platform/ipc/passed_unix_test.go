//go:build linux || darwin

package ipc_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

// connected are both ends of a connection, until the test ends.
func connected(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	path := filepath.Join(testkit.Home(t), "x.sock")
	l, err := ipc.Listen(path)
	must.Do(t, err)
	t.Cleanup(func() { l.Close() })
	if ours, err = ipc.Dial(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// A descriptor arrives once, with the data, is not inherited by started programs, and
// stays closed after Close.
func TestPassed(t *testing.T) {
	testkit.Leaks(t)
	conn, theirs := connected(t)
	r, w, err := os.Pipe()
	must.Do(t, err)
	defer r.Close()
	closed, _, err := os.Pipe()
	must.Do(t, err)
	closed.Close()
	for text, what := range map[string]ipc.Passable{"none": nil, "gone": closed, "once": w, "more": w} {
		if err := ipc.WritePassing(theirs, []byte(text), what); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	w.Close()
	var d ipc.Passed
	if d.Has() || d.TryWrite([]byte("x")) != 0 {
		t.Error("there is a descriptor before one has come")
	}
	must.Get(io.ReadFull(&ipc.Receiver{Conn: conn, To: &d}, make([]byte, 16)))(t)
	if !d.Has() || d.TryWrite([]byte("x")) != 1 {
		t.Error("there is none after that")
	}
	other := exec.Command("cat")
	in, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	must.Do(t, err)
	d.Close()
	d.Close()
	if got, err := io.ReadAll(r); string(got) != "x" || err != nil {
		t.Errorf("%q, %v came", got, err)
	}
	if d.Has() || d.TryWrite([]byte("x")) != 0 {
		t.Error("there is one after Close")
	}
	check.OK(t, errors.Join(in.Close(), other.Wait()))
}

// A connection that the other side resets fails to read, and has read nothing.
func TestReceiverOfAReset(t *testing.T) {
	conn, theirs := connected(t)
	must.Get(conn.Write([]byte("never read")))(t)
	theirs.Close() // with unread data: Linux resets the connection
	var d ipc.Passed
	if n, err := (&ipc.Receiver{Conn: conn, To: &d}).Read(make([]byte, 8)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v; want 0 and an error", n, err)
	}
}
