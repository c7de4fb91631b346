package pty_test

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// statusField reads a number from /proc/self/status: threads, or KiB of memory.
func statusField(t testing.TB, name string) int {
	t.Helper()
	status := must.Get(os.ReadFile("/proc/self/status"))(t)
	_, line, _ := strings.Cut(string(status), "\n"+name+":")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		t.Fatalf("no %s in /proc/self/status", name)
	}
	return must.Get(strconv.Atoi(fields[0]))(t)
}

// Idle terminals must not hold threads: creack/pty's own descriptor holds one in each
// Read, os.Process.Wait another one. A Read that waited in the system call would even
// hold a processor, and this test would not end.
func TestIdleTerminalsHoldNoThreads(t *testing.T) {
	testkit.Leaks(t)
	const terminals = 20 // more than may be held
	before := statusField(t, "Threads")
	for i := range terminals {
		p := start(t, nil, "sleep", "1000")
		if i%2 == 0 {
			go p.WaitReadable()
		} else {
			go p.Read(make([]byte, 1))
		}
		go p.Wait()
	}
	after := statusField(t, "Threads")
	t.Logf("%d threads with %d idle terminals, %d before", after, terminals, before)
	if after > before+10 {
		t.Errorf("%d threads for %d idle terminals, %d before", after, terminals, before)
	}
}

// Things that this process inherited must not reach a terminal: signals ignored by nohup,
// descriptors of its parent.
func TestNothingIsInherited(t *testing.T) {
	testkit.Leaks(t)
	cmd := exec.Command("sh", "-c", `trap "" HUP INT QUIT TSTP TTOU USR1 PIPE; exec 7<"$0"; exec "$0"`, os.Args[0])
	cmd.Env = append(os.Environ(), helperVar+"=ignored", "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Fields(string(bytes.ReplaceAll(out, []byte("\r"), nil)))
	if len(lines) > 1 {
		mask, err := strconv.ParseUint(lines[1], 16, 64)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines[1] = strconv.FormatUint(mask&(1<<31-1), 16) // 32 and up are the C library's
	}
	// ls itself opens the directory it lists as 3.
	if want := "SigIgn: 0 0 1 2 3"; strings.Join(lines, " ") != want {
		t.Errorf("a program on a terminal has\n%s\nwant %s", out, want)
	}
}

// BenchmarkIdleTerminal measures the cost of one idle terminal for this process.
func BenchmarkIdleTerminal(b *testing.B) {
	const terminals = 200
	for b.Loop() {
		memory, threads := statusField(b, "VmRSS"), statusField(b, "Threads")
		var all []*pty.PTY
		for range terminals {
			p := must.Get(pty.Start(pty.Command{Path: "/bin/sleep", Args: []string{"sleep", "1000"}}))(b)
			go p.WaitReadable()
			go p.Wait()
			all = append(all, p)
		}
		b.ReportMetric(float64(statusField(b, "VmRSS")-memory)/terminals, "KiB/terminal")
		b.ReportMetric(float64(statusField(b, "Threads")-threads)/terminals, "threads/terminal")
		for _, p := range all {
			p.Signal("KILL")
			p.Wait()
			p.Close()
		}
	}
}

// BenchmarkRead measures how fast output is drained, waiting as the daemon does.
func BenchmarkRead(b *testing.B) {
	p := must.Get(pty.Start(pty.Command{Path: "/bin/sh", Args: []string{"sh", "-c", "stty raw; exec yes 'a line of output as many programs print it, with some eighty bytes of text'"}}))(b)
	defer p.Close()
	defer p.Signal("KILL")
	for _, c := range []struct {
		name string
		wait func() error
	}{{"alone", func() error { return nil }}, {"after WaitReadable", p.WaitReadable}} {
		b.Run(c.name, func(b *testing.B) {
			buf := make([]byte, 4096)
			for n := 0; b.Loop(); n = 0 {
				for n < 1<<20 {
					must.Do(b, c.wait())
					m := must.Get(p.Read(buf))(b)
					n += m
				}
			}
			b.SetBytes(1 << 20)
		})
	}
}

// Available output is read at once, without waiting for more; the end is left to Read.
func TestTryRead(t *testing.T) {
	p := start(t, nil, "sh", "-c", `stty raw -echo; printf ready; head -c 1 >/dev/null; i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done`)
	p.until("ready")
	b := make([]byte, 4<<10)
	if n := p.TryRead(b); n != 0 {
		t.Errorf("%q before anything was printed", b[:n])
	}
	if n, err := p.TryWrite([]byte("x")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	var got, want []byte
	for {
		n, err := p.Read(b)
		for ; n > 0; n = p.TryRead(b) {
			got = append(got, b[:n]...)
		}
		if err != nil {
			break
		}
	}
	for i := range 20000 {
		want = append(strconv.AppendInt(want, int64(i), 10), '\n')
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, or in another order, of %d", len(got), len(want))
	}
	p.Close()
	if n := p.TryRead(b); n != 0 {
		t.Errorf("%d bytes after Close", n)
	}
}
