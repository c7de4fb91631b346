//go:build linux || darwin

package pty_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// Bytes for which there is room are typed at once; a program that does not read blocks
// nobody and loses no byte.
func TestTryWrite(t *testing.T) {
	p := start(t, nil, "sh", "-c", `stty raw -echo; printf ready; sleep 1000`)
	p.until("ready")
	if n, err := p.TryWrite([]byte("key")); n != 3 || err != nil {
		t.Errorf("TryWrite = %d, %v", n, err)
	}
	block := bytes.Repeat([]byte("x"), 4<<10)
	for total := 0; ; {
		n := must.Get(p.TryWrite(block))(t)
		if n == 0 {
			break // it has returned
		}
		if total += n; total > 1<<20 {
			t.Fatal("a program that does not read takes any amount")
		}
	}
	p.Close()
	if n, err := p.TryWrite(block); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Errorf("TryWrite after Close = %d, %v", n, err)
	}
}

// Text typed in parts arrives unchanged, by TryWrite or by Write.
func TestTryWriteArrives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "typed")
	p := start(t, []string{"FILE=" + file}, "sh", "-c", `stty raw -echo; printf ready; head -c 100000 >"$FILE"`)
	p.until("ready")
	want := strings.Repeat("0123456789", 10000)
	for rest := want; rest != ""; {
		n, err := p.TryWrite([]byte(rest))
		if err == nil && n == 0 {
			n, err = p.Write([]byte(rest[:1])) // which waits
		}
		must.Do(t, err)
		rest = rest[n:]
	}
	p.rest()
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%d bytes arrived of %d, or in another order (%v)", len(got), len(want), err)
	}
}
