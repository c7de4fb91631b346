package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Standard input that comes from a pipe arrives whole and once, however often the daemon
// is killed or replaced while it comes.
func TestPipedInputOverDaemons(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	run := exec.Command("tether", "run", "--private", "--name", "sum", "--", "cksum")
	run.Env = append(run.Environ(), "TETHER_HOME="+m.home)
	in := must.Get(run.StdinPipe())(t)
	var out bytes.Buffer
	run.Stdout = &out
	must.Do(t, run.Start())
	var sent bytes.Buffer
	to := io.MultiWriter(in, &sent)
	send := func(n int) {
		t.Helper()
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(rand.Uint32())
		}
		must.Get(to.Write(data))(t)
	}
	for n := range 6 {
		send(500_000) // more than all buffers have room for: most of it has passed
		if n%2 == 0 {
			m.kill()
			m.start("daemon")
			continue
		}
		m.start("daemon", "--replace")
	}
	send(1)
	must.Do(t, in.Close())
	if err := run.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	sum := exec.Command("cksum")
	sum.Stdin = &sent
	want := must.Get(sum.Output())(t)
	if got := strings.TrimSpace(out.String()); got != strings.TrimSpace(string(want)) {
		t.Errorf("the command has read %s, want %s", got, want)
	}
}
