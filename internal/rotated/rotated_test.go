package rotated_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tether/internal/rotated"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// writer writes a log of which the newest files are kept.
type writer struct {
	t    *testing.T
	path string
	n    int
}

func (w *writer) name(n int) string {
	if n == 0 {
		return w.path
	}
	return fmt.Sprintf("%s.%d", w.path, n)
}

func (w *writer) lines(count int) {
	w.t.Helper()
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	for range count {
		if err == nil {
			w.n++
			_, err = fmt.Fprintln(f, w.n)
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// rotate begins a new file. On Windows, which does not replace a file that somebody
// reads, it may have to stop half way and go on in the present one, as the daemon does.
func (w *writer) rotate(keep int) {
	w.t.Helper()
	for n := 1; n < keep; n++ { // as after a rotation that stopped
		if _, err := os.Lstat(w.name(n)); errors.Is(err, os.ErrNotExist) {
			keep = n
		}
	}
	for n := keep; n > 0; n-- {
		err := os.Rename(w.name(n-1), w.name(n))
		switch {
		case err == nil || errors.Is(err, os.ErrNotExist):
		case runtime.GOOS == "windows":
			return
		default:
			w.t.Fatal(err)
		}
	}
}

// Each line comes once and in order, whenever the log is written to and renamed: while
// its end is read, several times between two looks, and while there is no file.
func TestEveryLineComesOnce(t *testing.T) {
	for name, c := range map[string]struct {
		times     int
		meanwhile func(w *writer) // when the end of the followed file has just been read
	}{
		"nothing":                   {4, func(*writer) {}},
		"lines":                     {4, func(w *writer) { w.lines(2) }},
		"lines before the renaming": {4, func(w *writer) { w.lines(2); w.rotate(1) }},
		"lines before and after it": {4, func(w *writer) { w.lines(2); w.rotate(1); w.lines(2) }},
		"two renamings":             {4, func(w *writer) { w.lines(1); w.rotate(1); w.lines(2); w.rotate(1); w.lines(1) }},
		"two of three files":        {4, func(w *writer) { w.lines(1); w.rotate(3); w.lines(2); w.rotate(3) }},
		"as many as there are files": {4, func(w *writer) {
			for range 3 {
				w.lines(1)
				w.rotate(3)
			}
			w.lines(1)
		}},
		"one more than there are": {4, func(w *writer) {
			w.rotate(3)
			for range 3 {
				w.lines(1)
				w.rotate(3)
			}
			w.lines(1)
		}},
		"a file that somebody removed": {1, func(w *writer) {
			w.lines(1)
			w.rotate(3)
			w.lines(1)
			w.rotate(3)
			w.lines(1)
			_ = os.Remove(w.name(2))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &writer{t: t, path: filepath.Join(t.TempDir(), "log")}
			log := rotated.New(w.path, nil)
			defer log.Close()
			var got strings.Builder
			next := func(then func(*writer)) {
				t.Helper()
				must.Do(t, log.Next(func(added io.Reader, _ bool) error {
					_, err := io.Copy(&got, added)
					then(w)
					then = func(*writer) {}
					return err
				}))
			}
			next(nil) // there is no file yet
			w.lines(3)
			for range c.times {
				next(c.meanwhile)
			}
			for range 5 { // a renaming that does not end is not waited for
				next(func(*writer) {})
			}
			want := ""
			for n := range w.n {
				want += fmt.Sprintln(n + 1)
			}
			if got.String() != want {
				t.Errorf("got %q, want %q", got.String(), want)
			}
		})
	}
}

// Half a line at the end of a file is told from the beginning of the next one.
func TestFresh(t *testing.T) {
	w := &writer{t: t, path: filepath.Join(t.TempDir(), "log")}
	w.lines(2)
	f, err := secret.OpenRead(w.path)
	must.Do(t, err)
	log := rotated.New(w.path, f)
	defer log.Close()
	w.rotate(1)
	w.lines(1)
	var got []string
	err = log.Next(func(added io.Reader, fresh bool) error {
		data, err := io.ReadAll(added)
		got = append(got, fmt.Sprintf("%q %t", data, fresh))
		return err
	})
	if want := `["1\\n2\\n" false "" false "3\\n" true]`; err != nil || fmt.Sprintf("%s", got) != strings.ReplaceAll(want, "\\\\", "\\") {
		t.Errorf("%v, %v", got, err)
	}
}
