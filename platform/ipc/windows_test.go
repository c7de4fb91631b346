//go:build windows

package ipc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

// wantPrivate fails the test unless only this user may open the pipe.
func wantPrivate(t *testing.T, path string) {
	t.Helper()
	name := must.Get(os.ReadFile(path))(t)
	wide := must.Get(windows.UTF16PtrFromString(string(name)))(t)
	h := must.Get(windows.CreateFile(wide, windows.READ_CONTROL, 0, nil, windows.OPEN_EXISTING, 0, 0))(t)
	defer windows.CloseHandle(h)
	rights := must.Get(windows.GetSecurityInfo(h, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION))(t)
	user := must.Get(windows.GetCurrentProcessToken().GetTokenUser())(t)
	if owner, _, err := rights.Owner(); err != nil || !owner.Equals(user.User.Sid) {
		t.Errorf("the pipe belongs to %v, %v; want %v", owner, err, user.User.Sid)
	}
	list, _, err := rights.DACL()
	if err != nil || list == nil || list.AceCount != 1 {
		t.Fatalf("rights %v, %v; want one entry", list, err)
	}
	var entry *windows.ACCESS_ALLOWED_ACE
	must.Do(t, windows.GetAce(list, 0, &entry))
	if who := (*windows.SID)(unsafe.Pointer(&entry.SidStart)); !who.Equals(user.User.Sid) {
		t.Errorf("%v may open the pipe, want %v", who, user.User.Sid)
	}
}

func TestNeverRemovesAServedSocket(t *testing.T) {
	testkit.Leaks(t)
	home := testkit.Home(t)
	for name, text := range map[string]string{
		"file": "precious", "long": `\\.\pipe\tether-` + strings.Repeat("x", 1000), "elsewhere": `\\.\pipe\tether-..\x`, "remote": `\\host\pipe\tether-x`,
	} {
		path := filepath.Join(home, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		if l, err := ipc.Listen(path); err == nil || !strings.Contains(err.Error(), "not a socket") {
			l.Close()
			t.Errorf("took the place of %s: %v", path, err)
		}
		if conn, err := ipc.Dial(t.Context(), path); err == nil || errors.Is(err, ipc.ErrNotRunning) {
			t.Errorf("Dial of %s: %v, %v", path, conn, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%s is changed: %v", path, err)
		}
	}
}

func TestPlacesThatAreRefused(t *testing.T) {
	testkit.Leaks(t)
	home := testkit.Home(t)
	for _, c := range []struct{ path, says string }{
		{`relative\s`, "not absolute"},
		{filepath.Join(home, strings.Repeat("x", 300)), "bytes, this system allows"},
	} {
		l, err := ipc.Listen(c.path)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Listen(%q): %v, want %q", c.path, err, c.says)
		}
	}
}

// Behaviour on which net/http and the WebSocket library rely: the last bytes arrive after
// Close, deadlines are net.Errors, Close wakes.
func TestConnIsANetConn(t *testing.T) {
	testkit.Leaks(t)
	l := listen(t, filepath.Join(testkit.Home(t), "d.sock"))
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := l.Accept()
		check.OK(t, err)
		accepted <- conn
	}()
	here := must.Get(ipc.Dial(t.Context(), l.Addr().String()))(t)
	there := <-accepted

	var ne net.Error
	must.Do(t, here.SetReadDeadline(time.Now().Add(-time.Second)))
	if _, err := here.Read(make([]byte, 1)); !errors.As(err, &ne) || !ne.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read after the deadline: %v", err)
	}
	must.Do(t, here.SetReadDeadline(time.Time{}))
	const text = "the last bytes"
	must.Get(there.Write([]byte(text)))(t)
	check.OK(t, there.Close())
	if got, err := io.ReadAll(here); string(got) != text || err != nil {
		t.Errorf("after Close the other side reads %q, %v", got, err)
	}
	here.Close()
	if _, err := here.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
}

func TestHTTP(t *testing.T) {
	testkit.Leaks(t)
	l := listen(t, filepath.Join(testkit.Home(t), "d.sock"))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		check.OK(t, err)
		w.Write(text)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return ipc.Dial(t.Context(), l.Addr().String())
	}}
	client := &http.Client{Transport: transport}
	for size := 1; size <= 1<<20; size *= 4 {
		want := strings.Repeat("x", size)
		r := must.Get(client.Post("http://local/", "text/plain", strings.NewReader(want)))(t)
		if got, err := io.ReadAll(r.Body); string(got) != want || err != nil {
			t.Errorf("%d bytes came back of %d, %v", len(got), size, err)
		}
		r.Body.Close()
	}
	transport.CloseIdleConnections()
	server.Close()
	<-served
}
