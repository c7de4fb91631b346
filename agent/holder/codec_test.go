package holder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// FuzzMessages: a message that a decoder accepts is written again by its encoder; only
// additions of a later version at the end are lost.
func FuzzMessages(f *testing.F) {
	when := time.Unix(946684800, 7)
	for _, p := range [][]byte{
		state{1, 3, 2, when, 4, pty.Size{Cols: 80, Rows: 24}, 1 << 20}.frame(),
		exitRecord{5, when, pty.Exit{Code: -1, Signal: "SIGKILL"}}.frame(),
		reply{7, statusError, "why"}.frame(),
		Checkpoint{9, []byte("note")}.frame(kindNote),
	} {
		f.Add(p[frameHead:])
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if len(p) > maxFrame {
			return
		}
		check := func(what string, encoded []byte, err error) {
			if err == nil && !bytes.HasPrefix(p, encoded[frameHead:]) {
				t.Errorf("%s %x became %x", what, p, encoded[frameHead:])
			}
		}
		s, err := decodeState(p)
		check("state", s.frame(), err)
		e, err := decodeExit(p)
		check("exit", e.frame(), err)
		r, err := decodeReply(p)
		check("reply", r.frame(), err)
		look, err := decodeReading(p)
		if again, err2 := decodeReading(encodeReading(look)); err == nil && (err2 != nil || again != look) {
			t.Errorf("reading %x became %+v, then %+v, %v", p, look, again, err2)
		}
		c, err := decodeCheckpoint(&fields{b: p}, maxBlob)
		check("checkpoint", c.frame(kindNote), err)
		h, err := readHello(bytes.NewReader(append([]byte(magic), p...)))
		if err == nil && !bytes.Equal(h.encode()[helloHead:], p[2:][:helloBody]) {
			t.Errorf("hello %x became %x", p, h.encode())
		}
	})
}

// A program that Windows has ended for an access violation ended with 3221225477, with a
// holder as without.
func TestExitCodes(t *testing.T) {
	for _, code := range []int{0, 1, 137, 255, 0xc0000005, 0xc000013a, -1} {
		e := exitRecord{5, time.Unix(946684800, 7), pty.Exit{Code: code}}
		if got, err := decodeExit(e.frame()[frameHead:]); got.exit.Code != code || err != nil {
			t.Errorf("code %d became %d, %v", code, got.exit.Code, err)
		}
	}
}

// FuzzSpawn: a spawn message that a holder understands is encoded again in the same
// bytes.
func FuzzSpawn(f *testing.F) {
	p := must.Get(encodeSpawn(Options{Dir: "/run/h", Key: Key(), Lock: "/run/lock"}, Spec{
		ID: "x", Meta: []byte("m"), LogBytes: 1 << 20, AwayHold: 1, Stall: 2, KeepExited: 3,
		Command: pty.Command{Path: "sh", Args: []string{"sh", "-c", ""}, Env: []string{"A=b", "C="}, Dir: "/", Size: pty.DefaultSize},
	}))(f)
	f.Add(p[helloHead+helloBody+frameHead:])
	f.Add(encodeFailed(&pty.StartError{What: "program", Name: "x", Err: fs.ErrNotExist})[frameHead:])
	f.Fuzz(func(t *testing.T, p []byte) {
		if o, s, err := decodeSpawn(p); err == nil && len(o.Key) == KeyBytes {
			again := must.Get(encodeSpawn(o, s))(t)
			o2, s2, err := decodeSpawn(again[helloHead+helloBody+frameHead:])
			if diff := cmp.Diff(s, s2) + cmp.Diff(o, o2); err != nil || diff != "" {
				t.Errorf("%v: %s", err, diff)
			}
		}
		if err := decodeFailed(p); err == nil {
			t.Error("no error")
		}
	})
}

func TestSpawnMessage(t *testing.T) {
	want := Spec{
		ID: "x", Meta: []byte("m"), LogBytes: 1 << 20, AwayHold: time.Second, Stall: time.Minute, KeepExited: time.Hour,
		Command: pty.Command{Path: "sh", Args: []string{"sh", "-c", ""}, Env: []string{"A=b", "C="}, Dir: testkit.Abs("/"), Size: pty.DefaultSize},
	}
	options := Options{Dir: "/run/h", Key: Key(), Lock: "/run/lock"}
	message := must.Get(encodeSpawn(options, want))(t)
	had, got, err := readSpawn(bytes.NewReader(message))
	if diff := cmp.Diff(want, got) + cmp.Diff(options, had); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	for n := range message {
		if _, _, err := readSpawn(bytes.NewReader(message[:n])); err == nil {
			t.Errorf("%d of %d bytes were enough", n, len(message))
		}
	}
	body := message[helloHead+helloBody+frameHead:]
	if _, s, err := decodeSpawn(appendField(bytes.Clone(body), 0x81, "later")); err != nil || s.ID != "x" {
		t.Errorf("with an optional field: %v", err)
	}
	if _, _, err := decodeSpawn(appendField(bytes.Clone(body), 0x7f, "later")); err == nil {
		t.Error("a field that must be understood was skipped")
	}
	want.Command.Args = []string{strings.Repeat("x", maxSpawn)}
	if _, err := encodeSpawn(options, want); err == nil {
		t.Error("arguments without end were accepted")
	}
}

func TestErrorsSurvive(t *testing.T) {
	for _, c := range []struct {
		err error
		is  error
	}{
		{&pty.StartError{What: "program", Name: "x", Err: fs.ErrNotExist}, fs.ErrNotExist},
		{&pty.StartError{What: "terminal", Err: fs.ErrPermission}, fs.ErrPermission},
		{&pty.StartError{What: "size", Name: "0x0", Err: errors.New("odd")}, nil},
		{fmt.Errorf("listen: %w", fs.ErrPermission), fs.ErrPermission},
		{ErrInUse, ErrInUse},
	} {
		_, got := readStarted(bytes.NewReader(encodeFailed(c.err)))
		var was, is *pty.StartError
		if got.Error() != c.err.Error() || c.is != nil && !errors.Is(got, c.is) || errors.As(c.err, &was) != errors.As(got, &is) {
			t.Errorf("%v became %v", c.err, got)
		}
		if was != nil && (was.What != is.What || was.Name != is.Name) {
			t.Errorf("%+v became %+v", was, is)
		}
	}
	if faults, err := readStarted(bytes.NewReader(bytesFrame(kindStarted, []byte("x")))); err != nil || faults != "x" {
		t.Error(faults, err)
	}
	if _, err := readStarted(strings.NewReader("")); err == nil {
		t.Error("silence was taken for success")
	}
}

func TestCheckpointsAreThinned(t *testing.T) {
	var s checkpoints
	blob := make([]byte, maxBlob)
	for off := int64(0); off < 1000; off++ {
		s.put(Checkpoint{off * off, blob[:off%2*int64(len(blob))]})
		if s.bytes > maxCheckpointBytes || len(s.all) > maxCheckpoints || s.all[0].Off != 0 || s.all[len(s.all)-1].Off != off*off {
			t.Fatalf("after %d: %d notes of %d bytes", off, len(s.all), s.bytes)
		}
	}
	s.put(Checkpoint{999 * 999, nil})
	if n := len(s.all); s.all[n-1].Off != 999*999 || s.all[n-1].Blob != nil {
		t.Error("the newest was not replaced")
	}
	s.trim(500 * 500)
	if s.all[0].Off < 500*500 || s.all[0].Off > 600*600 {
		t.Errorf("the oldest that is of use is at %d", s.all[0].Off)
	}
	s.trim(1 << 40)
	if len(s.all) != 1 || s.all[0].Off != 999*999 || s.bytes != 0 {
		t.Errorf("%d notes of %d bytes are left, want the newest", len(s.all), s.bytes)
	}
	s.put(Checkpoint{1 << 41, nil})
	s.trim(1 << 40)
	if len(s.all) != 1 || s.all[0].Off != 1<<41 {
		t.Errorf("notes %v, want the newest alone", s.all)
	}
}
