package installer

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

func TestWriteLeavesNothingBehind(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "dir", "unit")
	must.Do(t, errors.Join(write(path, "one"), write(path, "two")))
	if b, err := os.ReadFile(path); err != nil || string(b) != "two" {
		t.Errorf("%q, %v", b, err)
	}
	// A directory in its place cannot be replaced by a file.
	taken := filepath.Join(root, "taken")
	must.Do(t, os.MkdirAll(filepath.Join(taken, "x"), 0o755))
	p, ok := errors.AsType[*Problem](write(taken, "three"))
	if !ok || !strings.Contains(p.Next, "nothing was changed") {
		t.Errorf("got %v", p)
	}
	if err := write(filepath.Join(path, "below a file"), "four"); err == nil {
		t.Error("a file became a directory")
	}
	if left, _ := filepath.Glob(filepath.Join(root, ".tether-*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	if err := remove(path, root); err != nil || exists(filepath.Dir(path)) || !exists(root) {
		t.Errorf("remove: %v", err)
	}
	if err := remove(path, root); err != nil {
		t.Errorf("remove again: %v", err)
	}
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this system has no /dev/full")
	}
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must.Do(t, err)
	defer f.Close()
	_, err = f.WriteString("x")
	p, ok := errors.AsType[*Problem](notWritten("/x/unit", err))
	if !ok || !errors.Is(p, err) || !strings.Contains(p.Next, "free space") {
		t.Errorf("got %v", p)
	}
}

func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skip("this system has no datagrams between processes:", err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("INVOCATION_ID", "x")
	notify := Notifier()
	for _, name := range fromSystemd {
		if _, ok := os.LookupEnv(name); ok {
			t.Errorf("%s would be inherited", name)
		}
	}
	must.Do(t, notify("READY=1"))
	b := make([]byte, 64)
	if n, err := conn.Read(b); err != nil || string(b[:n]) != "READY=1" {
		t.Errorf("heard %q, %v", b[:n], err)
	}
	if err := Notifier()("READY=1"); err != nil {
		t.Errorf("without a manager: %v", err)
	}
	t.Setenv("NOTIFY_SOCKET", path+".none")
	if err := Notifier()("READY=1"); err == nil {
		t.Error("nobody heard it, and there is no error")
	}
}

func TestAccounts(t *testing.T) {
	silent := func(context.Context, string, ...string) (string, error) { return "", errors.New("exit status 2") }
	var s Service
	if err := s.For(t.Context(), silent, ""); err != nil || s.User == "" || s.UserHome == "" {
		t.Errorf("who calls: %+v, %v", s, err)
	}
	err := s.For(t.Context(), silent, "nobody-here")
	if p, ok := errors.AsType[*Problem](err); !ok || !strings.Contains(p.Text, `no user "nobody-here"`) {
		t.Errorf("got %v", err)
	}
	directory := func(_ context.Context, name string, args ...string) (string, error) {
		return "amy-on-the-net:x:70001:70000:Amy:/net/amy:/bin/zsh\n", nil
	}
	if err := s.For(t.Context(), directory, "amy-on-the-net"); err != nil || s.UID != 70001 || s.UserHome != "/net/amy" {
		t.Errorf("in a directory: %+v, %v", s, err)
	}
}

func TestServiceDirs(t *testing.T) {
	s := Service{Program: "/t", User: "dev", UserHome: "/home/dev", Env: []string{"XDG_CONFIG_HOME=/c"}}
	if d, err := s.Dirs("linux"); err != nil || d.State != "/home/dev/.local/state/tether" || d.Config != "/c/tether" {
		t.Errorf("%+v, %v", d, err)
	}
	s.Home = "/t h"
	if d, err := s.Dirs("linux"); err != nil || d.State != "/t h/state" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := (&Service{}).Dirs("linux"); err != nil {
		t.Error(err)
	}
}
