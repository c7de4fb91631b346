package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/internal/testkit/must"
)

// recorder is a testing.TB that keeps complaints and runs its cleanups when told.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, strings.TrimSpace(f)) }
func (r *recorder) end() {
	for _, f := range r.cleanups {
		f()
	}
}

func TestWithin(t *testing.T) {
	calls := 0
	if !within(time.Minute, func() bool { calls++; return calls == 5 }) || calls != 5 {
		t.Errorf("the condition was true at the 5th look; looked %d times", calls)
	}
	if within(time.Millisecond, func() bool { return false }) {
		t.Error("a condition that is never true was reported as true")
	}
	if !within(0, func() bool { return true }) {
		t.Error("a condition that is true at once was not looked at")
	}
}

func TestHomeIsShortAndEmpty(t *testing.T) {
	home := Home(t)
	if os.Getenv("TETHER_HOME") != home {
		t.Errorf("TETHER_HOME = %q, want %q", os.Getenv("TETHER_HOME"), home)
	}
	if socket := filepath.Join(home, "run", "daemon.sock"); len(socket) > 60 && filepath.Separator == '/' {
		t.Errorf("%q leaves little room below the limit of 104 bytes", socket)
	}
	if names, err := os.ReadDir(home); err != nil || len(names) > 0 {
		t.Errorf("home holds %v, %v; want nothing", names, err)
	}
}

func TestNothingLeft(t *testing.T) {
	r := &recorder{TB: t}
	Leaks(r)
	f := must.Get(os.Open(os.DevNull))(t)
	f.Close()
	done := make(chan struct{})
	go close(done)
	<-done
	r.end()
	if len(r.errors) > 0 {
		t.Errorf("complained: %q", r.errors)
	}
}

func TestLeaksAreFound(t *testing.T) {
	before := look()
	f := must.Get(os.Open(os.DevNull))(t)
	defer f.Close()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	runs := make(chan struct{})
	wg.Go(func() { close(runs); <-stop })
	<-runs // before it has begun, its stack does not say whose it is
	defer wg.Wait()
	defer close(stop)
	child := exec.Command(os.Args[0], "-test.run=^$")
	must.Do(t, child.Start())
	defer child.Wait() // until then it is a zombie at least

	left := strings.Join(look().minus(before), "\n")
	for _, want := range []string{"TestLeaksAreFound", "descriptor ", "child process"} {
		if want == "descriptor " && filepath.Separator != '/' {
			continue // Windows has none
		}
		if !strings.Contains(left, want) {
			t.Errorf("%q is missing in what is left:\n%s", want, left)
		}
	}
}
