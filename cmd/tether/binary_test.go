package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Bytes that are no UTF-8 arrive exactly where the child may be held: at a script that
// reads them, and, each as U+FFFD, at a host.
func TestBinaryOutputIsExact(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	const size = 768 << 10 // a log of 1 MiB does not hold it: a byte that is no UTF-8 takes three there
	configure(t, "terminals.log_bytes", "1MiB")
	m := newMortal(t)
	for round := range testkit.Rounds(t, 1, 100) {
		random := make([]byte, size)
		rand.NewChaCha8([32]byte{byte(round)}).Read(random)
		letters := bytes.Clone(random) // no controls, also no C1 ones: hosts see everything
		for i, b := range letters {
			if b < ' ' || b >= 0x7f && b < 0xa0 || b == 0xc2 {
				letters[i] = 'a' + b%26
			}
		}
		m.showsBytes(fmt.Sprint("random-", round), random)
		m.showsBytes(fmt.Sprint("letters-", round), letters)
		m.showsBytes(fmt.Sprint("Latin-1-", round), bytes.Repeat([]byte("Stra\xdfe, fa\xe7ade, \xfcber, \xe9t\xe9\n"), size/30))
	}
}

// showsBytes runs a command that prints the bytes.
func (m *mortal) showsBytes(name string, all []byte) {
	t := m.t
	dir := t.TempDir()
	file, begin := filepath.Join(dir, "file"), filepath.Join(dir, "begin")
	must.Do(t, os.WriteFile(file, all, 0o600))
	out := new(bytes.Buffer)
	c := exec.Command("tether", "run", "--name", name, "--on-slow", "hold", "--", "sh", "-c",
		`stty raw -echo; until test -e "$1"; do sleep .01; done; cat "$0"; sleep .2`, file, begin)
	c.Stdout = out
	must.Do(t, c.Start())
	testkit.Eventually(t, patience, "the terminal is there", func() bool { _, err := m.door.Find(t.Context(), name); return err == nil })
	w := m.watch(m.uri(m.find(name).ID), true)
	must.Do(t, os.WriteFile(begin, nil, 0o600))
	if err := c.Wait(); err != nil || !bytes.Equal(out.Bytes(), all) {
		t.Errorf("%s: of %d bytes %d arrived, %v", name, len(all), out.Len(), err)
	}
	if strings.HasPrefix(name, "random") {
		return // other tests cover the treatment of its sequences
	}
	testkit.Eventually(t, patience, "the host sees the exit", func() bool { _, exits, _ := w.state(); return len(exits) > 0 })
	if got, want := w.shown(), asText(all); got != want {
		t.Errorf("%s: of %d bytes of text the host got %d", name, len(want), len(got))
	}
}

// asText has U+FFFD for each byte that is no UTF-8.
func asText(p []byte) string {
	var b strings.Builder
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		b.WriteRune(r)
		p = p[n:]
	}
	return b.String()
}
