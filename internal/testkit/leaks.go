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

// Leaks makes the test fail if goroutines, file descriptors or child processes exist at
// its end that did not exist when Leaks was called. It waits up to Patience for them to
// end, and prints the stack, target or number of each that remains. Call it first, so
// that it checks last. It does not work in parallel tests, which see each other's.
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

// startPoller makes the runtime open the descriptors of its poller, which it keeps.
func startPoller(t testing.TB) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
}

// scene is what exists at one moment: it maps a key that does not change to a description
// for people.
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

// isRuntimes reports whether the goroutine is one that the standard library starts once
// and keeps, or look itself.
func isRuntimes(stack string) bool {
	return strings.Contains(stack, "os/signal.signal_recv") || strings.Contains(stack, "runtime.ensureSigM") ||
		strings.Contains(stack, "testkit.look(")
}

// addDescriptors does nothing on Windows: handles have no names there, and in /dev/fd
// Wine shows its own descriptors.
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
				continue // the descriptor that read the directory
			}
		}
		s["fd "+e.Name()+" "+target] = fmt.Sprintf("descriptor %s → %s", e.Name(), target)
	}
}

// addChildren does nothing if processes cannot be listed (Windows). Zombies count: the
// test must wait for its children.
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
