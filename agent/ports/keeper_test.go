package ports_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/ports"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/secret"
	"tether/platform/socket"
)

// free is a machine with these taken ports alone.
func free(taken ...int) func(int) bool {
	return func(port int) bool { return !slices.Contains(taken, port) }
}

func keep(t *testing.T, k *ports.Keeper, asked, dir, name string) *ports.Kept {
	t.Helper()
	kept, err := k.Keep(asked, dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// Starts at the same moment never get the same port, and the ports are those of the range
// that browsers use.
func TestStartsAtOnce(t *testing.T) {
	k := ports.New(ports.Options{Free: free()})
	dir := t.TempDir()
	var mu sync.Mutex
	got := map[int]bool{}
	var starts sync.WaitGroup
	for range 200 {
		starts.Go(func() {
			kept, err := k.Keep(ports.Auto, dir, "web")
			if err != nil {
				t.Error(err)
				return
			}
			kept.Begin(nil)
			mu.Lock()
			defer mu.Unlock()
			if got[kept.Port] || kept.Port < ports.First || kept.Port > ports.Last {
				t.Errorf("a start got %d", kept.Port)
			}
			got[kept.Port] = true
		})
	}
	starts.Wait()
	if len(got) != 200 {
		t.Errorf("%d ports", len(got))
	}
}

// No start gets a port that browsers refuse; when all others are taken, none gets any.
func TestExhausted(t *testing.T) {
	k := ports.New(ports.Options{Free: func(port int) bool { return port < 3001 || port >= 6660 && port < 6700 || port == 4045 }})
	dir := t.TempDir()
	n := 0
	for {
		kept, err := k.Keep(ports.Auto, dir, "web")
		if err != nil {
			if want := "no port from 3000 to 9999 is free"; err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			break
		}
		if n++; slices.Contains([]int{4045, 6665, 6666, 6667, 6668, 6669, 6679, 6697}, kept.Port) {
			t.Errorf("a start got %d", kept.Port)
		}
	}
	if want := 1 + 40 - 7; n != want {
		t.Errorf("%d ports, want %d", n, want)
	}
}

// The same program of the same work tree gets the same port, also from the next daemon,
// and others get others.
func TestSamePort(t *testing.T) {
	top := t.TempDir()
	file := filepath.Join(top, "ports.json")
	for _, dir := range []string{"app/.git", "app/web", "other/.git"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"app", "other"} {
		if err := os.WriteFile(filepath.Join(top, dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	app, web, other := filepath.Join(top, "app"), filepath.Join(top, "app", "web"), filepath.Join(top, "other")
	var taken []int
	daemon := func() *ports.Keeper {
		return ports.New(ports.Options{Keep: file, Free: func(port int) bool { return !slices.Contains(taken, port) },
			Report: func(trouble string) {
				if trouble != "" {
					t.Error(trouble)
				}
			}})
	}
	first := keep(t, daemon(), ports.Auto, app, "web").Port
	if got := keep(t, daemon(), ports.Auto, web, "web").Port; got != first {
		t.Errorf("a directory below: %d, want %d", got, first)
	}
	for name, got := range map[string]int{"another name": keep(t, daemon(), ports.Auto, app, "api").Port, "another work tree": keep(t, daemon(), ports.Auto, other, "web").Port} {
		if got == first {
			t.Errorf("%s: %d, too", name, got)
		}
	}
	taken = []int{first}
	second := keep(t, daemon(), ports.Auto, app, "web").Port
	if taken = nil; second == first {
		t.Errorf("%d, which is taken", second)
	}
	if got := keep(t, daemon(), ports.Auto, app, "web").Port; got != second {
		t.Errorf("%d, and the last one was %d", got, second)
	}
}

// A port is kept from the start of a program for 30 s, or until its end.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := ports.New(ports.Options{Free: free()})
		given := func(when string, want bool) {
			t.Helper()
			var taken *ports.TakenError
			kept, err := k.Keep("3000", "", "")
			if got := errors.As(err, &taken) && taken.Given && taken.Port == 3000; got != want {
				t.Errorf("%s: given: %t, want %t: %v", when, got, want, err)
			}
			kept.Release()
		}
		kept := keep(t, k, "3000", "", "")
		time.Sleep(time.Hour)
		given("before it starts", true)
		kept.Begin(nil)
		time.Sleep(29 * time.Second)
		given("after 29 s", true)
		time.Sleep(time.Second)
		given("after 30 s", false)
		kept = keep(t, k, "3000", "", "")
		ended := false
		kept.Begin(func() bool { return ended })
		given("while it runs", true)
		ended = true
		given("after its end", false)
		kept.Release()
		later := keep(t, k, "3000", "", "")
		kept.Release() // again
		given("kept by another", true)
		later.Release()
	})
}

func TestNumbers(t *testing.T) {
	k := ports.New(ports.Options{Free: free(3000)})
	var taken *ports.TakenError
	if _, err := k.Keep("3000", "", ""); !errors.As(err, &taken) || err.Error() != "port 3000 is in use" {
		t.Errorf("a port in use: %v", err)
	}
	for _, asked := range []string{"", "0", "65536", "-1", "+1", "03000", "free", "AUTO", "3000 ", strings.Repeat("1", 100)} {
		if _, err := k.Keep(asked, "", ""); err == nil || !strings.HasSuffix(err.Error(), "must be auto or 1 to 65535") {
			t.Errorf("%q: %v", asked, err)
		}
	}
	if got := keep(t, k, "65535", "", "").Fill("--port={port}", "{port}{port}", "{ports}", ""); !slices.Equal(got, []string{"--port=65535", "6553565535", "{ports}", ""}) {
		t.Errorf("%q", got)
	}
	var none *ports.Kept
	if got := none.Fill("{port}"); !slices.Equal(got, []string{"{port}"}) {
		t.Errorf("without a port: %q", got)
	}
}

// Real ports that nothing has are given.
func TestRealPorts(t *testing.T) {
	kept := keep(t, ports.New(ports.Options{}), ports.Auto, t.TempDir(), "web")
	if !socket.Free(kept.Port) {
		t.Errorf("%d is not free", kept.Port)
	}
}

// A file that cannot be used costs only the memory, and is reported.
func TestUselessFile(t *testing.T) {
	testkit.Leaks(t)
	for name, text := range map[string]string{"no JSON": "x", "another version": `{"version":2}`, "fine": `{"version":1,"given":[{"key":"x","port":22},{"key":"y","port":6000}]}`} {
		file := filepath.Join(t.TempDir(), "ports.json")
		must.Do(t, secret.WriteFile(file, []byte(text)))
		var told []string
		k := ports.New(ports.Options{Keep: file, Free: free(), Report: func(trouble string) { told = append(told, trouble) }})
		if (len(told) == 0) != (name == "fine") {
			t.Errorf("%s: %q", name, told)
		}
		keep(t, k, ports.Auto, t.TempDir(), "web")
		if told[len(told)-1] != "" {
			t.Errorf("%s: after it was written: %q", name, told)
		}
	}
}
