package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tether/agent"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestLogIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	const max = 1000
	l := must.Get(agent.OpenLog(name, max, func(trouble string) { t.Errorf("trouble: %s", trouble) }))(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				if _, err := fmt.Fprintf(l, "line %d of %d\n", i, w); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := l.Write([]byte(strings.Repeat("x", 2*max) + "\n")); err != nil {
		t.Errorf("a line larger than the file: %v", err)
	}
	if _, err := l.Write([]byte("last\n")); err != nil {
		t.Error(err)
	}
	check.OK(t, l.Close())
	for suffix, most := range map[string]int{"": max, ".1": 2*max + 1} {
		data, err := os.ReadFile(name + suffix)
		if err != nil || len(data) > most {
			t.Errorf("%s: %d bytes, %v; want at most %d", suffix, len(data), err, most)
		}
		if info, err := os.Stat(name + suffix); err != nil || info.Mode().Perm() != 0o600 && filepath.Separator == '/' {
			t.Errorf("%s: %v, %v", suffix, info.Mode(), err)
		}
	}
	if data, _ := os.ReadFile(name); string(data) != "last\n" {
		t.Errorf("the newest file has %q", data)
	}

	again := must.Get(agent.OpenLog(name, max, nil))(t)
	defer again.Close()
	fmt.Fprintln(again, "more")
	if data, _ := os.ReadFile(name); string(data) != "last\nmore\n" {
		t.Errorf("opened again it has %q", data)
	}
}

// A log that cannot be renamed, as on Windows while somebody reads the older one, loses
// no line until it has twice its size.
func TestLogIsNotRenamed(t *testing.T) {
	const max = 1000
	name := filepath.Join(t.TempDir(), "log")
	must.Do(t, os.MkdirAll(filepath.Join(name+".1", "something"), 0o700))
	var trouble []string
	l := must.Get(agent.OpenLog(name, max, func(s string) { trouble = append(trouble, s) }))(t)
	defer l.Close()
	line := strings.Repeat("x", 99) + "\n"
	for range 2 * max / len(line) {
		fmt.Fprint(l, line)
	}
	if data, err := os.ReadFile(name); err != nil || len(data) != 2*max || trouble != nil {
		t.Errorf("%d bytes, %v, %q", len(data), err, trouble)
	}
	if fmt.Fprint(l, line); len(trouble) != 1 {
		t.Errorf("after twice its size: %q", trouble)
	}
	must.Do(t, os.RemoveAll(name+".1"))
	fmt.Fprint(l, line)
	if data, err := os.ReadFile(name); err != nil || string(data) != line || len(trouble) != 2 || trouble[1] != "" {
		t.Errorf("%d bytes, %v, %q", len(data), err, trouble)
	}
}
