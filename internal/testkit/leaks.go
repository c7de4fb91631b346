package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tether/platform/proc"
)

// Leaks makes the test fail if, at its end, it has left goroutines, file descriptors or child processes that were not there when Leaks was
// called. It waits for them to go away before it complains, and prints each with its stack, target or number. Call it first; it does not
// work in parallel tests, which see each other's.
func Leaks(t testing.TB) {
	t.Helper()
	startPoller(t)
	before := look()
	t.Cleanup(func() {
		var left []string
		if within(Patience, func() bool { left = look().minus(before); return len(left) == 0 }) {
			return
		}
		t.Errorf("%d left behind:\n%s", len(left), strings.Join(left, "\n"))
	})
}

// startPoller makes the runtime open its own descriptors, which it keeps.
func startPoller(t testing.TB) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
}

// scene maps a key that stays the same between two looks to its text for the reader.
type scene map[string]string

func look() scene {
	s := scene{}
	s.addGoroutines()
	s.addDescriptors()
	s.addChildren()
	return s
}

func (s scene) minus(before scene) []string {
	var left []string
	for key, text := range s {
		if _, ok := before[key]; !ok {
			left = append(left, text)
		}
	}
	slices.Sort(left)
	return left
}

func (s scene) addGoroutines() {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	for stack := range strings.SplitSeq(string(buf[:n]), "\n\n") {
		if isRuntimes(stack) {
			continue
		}
		id, _, _ := strings.Cut(stack, " [") // "goroutine 12 [select]:"
		s[id] = stack
	}
}

// isRuntimes tells goroutines that the standard library starts once and keeps.
func isRuntimes(stack string) bool {
	return strings.Contains(stack, "os/signal.signal_recv") || strings.Contains(stack, "runtime.ensureSigM") ||
		strings.Contains(stack, "testkit.look(")
}

// addDescriptors does nothing on Windows, whose handles have no names: Wine shows its own there.
func (s scene) addDescriptors() {
	if os.PathSeparator != '/' {
		return
	}
	fds, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range fds {
		name := filepath.Join("/dev/fd", e.Name())
		target, err := os.Readlink(name)
		if err != nil {
			if _, err := os.Stat(name); err != nil {
				continue // the one that read the directory
			}
		}
		s["fd "+e.Name()+" "+target] = fmt.Sprintf("descriptor %s → %s", e.Name(), target)
	}
}

// addChildren does nothing if processes cannot be listed (Windows). Zombies count: they must be waited for.
func (s scene) addChildren() {
	all, err := proc.List()
	if err != nil {
		return
	}
	for _, p := range all {
		if p.Parent == os.Getpid() {
			s[fmt.Sprintf("process %d %d", p.Pid, p.Start)] = fmt.Sprintf("child process %d, zombie: %t", p.Pid, p.Zombie)
		}
	}
}
