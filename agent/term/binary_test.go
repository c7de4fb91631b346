package term_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit"
)

var anySize = testkit.Load(1<<20, 96<<10)

// anyBytes makes outputs of anySize that are not UTF-8, or contain sequences that views
// leave out.
var anyBytes = map[string]func() []byte{
	"random": random,
	"gzip": func() []byte {
		var gz bytes.Buffer
		z := gzip.NewWriter(&gz)
		fmt.Fprintf(z, "%x %x", random(), random())
		z.Close()
		return gz.Bytes()[:anySize]
	},
	"Latin-1":            repeated("Stra\xdfe, fa\xe7ade, na\xefve, \xfcber, \xe9t\xe9\r\n"),
	"every other byte":   repeated("a\xff"),
	"queries":            repeated("a\x1b[c"),
	"a cut for each one": repeated("\x05\xff"),
	"UTF-8":              repeated("Straße\r\n"),
	"zeros":              repeated("\x00"),
}

func random() []byte {
	all := make([]byte, anySize)
	rand.NewChaCha8([32]byte{1}).Read(all)
	return all
}

func repeated(s string) func() []byte {
	return func() []byte { return []byte(strings.Repeat(s, anySize/len(s))) }
}

// readAll reads available output from the offset on, and reports how much was lost.
func readAll(t *testing.T, r *output.Reader) (data []byte, lost int64) {
	t.Helper()
	for buf := make([]byte, 32<<10); ; {
		ev, ok, err := r.TryNext(buf)
		var lagged *output.LaggedError
		switch {
		case errors.As(err, &lagged):
			lost += max(lagged.Lost, 1)
			continue
		case err == io.EOF, err == nil && !ok:
			return data, lost
		case err != nil:
			t.Fatal(err)
		}
		data = append(data, ev.Data...)
	}
}

// A log of 4 MiB keeps 1 MiB of any bytes whole, also for a host, and stays within its
// bound in memory.
func TestAnyBytesFitTheLog(t *testing.T) {
	for name, bytesOf := range anyBytes {
		t.Run(name, func(t *testing.T) {
			all := bytesOf()
			synctest.Test(t, func(t *testing.T) {
				h, child, pool := start(t, redacted(t, redact.Options{Tokens: true}), term.Spec{LendTo: []string{"lab"}})
				for rest := all; len(rest) > 0; rest = rest[min(4<<10, len(rest)):] {
					child.Print(string(rest[:min(4<<10, len(rest))]))
				}
				child.End(0)
				<-h.Done()
				if got, lost := readAll(t, reader(t, h, output.ReaderOptions{View: output.ViewRaw})); lost > 0 || !bytes.Equal(got, all) {
					t.Errorf("of %d bytes %d are kept", len(all), len(got))
				}
				text, _ := readAll(t, reader(t, h, output.ReaderOptions{View: output.ViewText}))
				shown, lost := readAll(t, reader(t, hostOf(t, pool, "lab"), output.ReaderOptions{View: output.ViewOutward}))
				if lost > 0 || len(shown) != len(text) || int64(len(text)) != h.TextEnd() {
					t.Errorf("of %d bytes of text the host gets %d, and %d are lost", h.TextEnd(), len(shown), lost)
				}
				if used, _ := pool.Memory(); used > int64(6*anySize) {
					t.Errorf("%d bytes of memory are used", used)
				}
			})
		})
	}
}

// A reader that may hold the child gets all of any bytes, however slowly it reads and
// however small the log is.
func TestHoldingReaderLosesNoBytes(t *testing.T) {
	for name, bytesOf := range anyBytes {
		for _, view := range []output.View{output.ViewScreen, output.ViewOutward} {
			t.Run(fmt.Sprint(name, " ", view), func(t *testing.T) {
				all := bytesOf()
				synctest.Test(t, func(t *testing.T) {
					o := redacted(t, redact.Options{Tokens: true})
					o.LogBytes = 64 << 10
					h, child, pool := start(t, o, term.Spec{LendTo: []string{"lab"}, OnSlow: term.Hold})
					if view == output.ViewOutward {
						h = hostOf(t, pool, "lab")
					}
					r := reader(t, h, output.ReaderOptions{View: view, Hold: true})
					go func() {
						for rest := all; len(rest) > 0; rest = rest[min(32<<10, len(rest)):] {
							child.Print(string(rest[:min(32<<10, len(rest))]))
						}
						child.End(0)
					}()
					got, buf := []byte(nil), make([]byte, 5000)
					for {
						ev, err := r.Next(t.Context(), buf)
						if err == io.EOF {
							break
						}
						if err != nil {
							t.Fatalf("after %d bytes: %v", len(got), err)
						}
						if got = append(got, ev.Data...); rand.IntN(10) == 0 {
							time.Sleep(time.Second) // shorter than the stall time
						}
						if used, _ := pool.Memory(); used > 2<<20 {
							t.Fatalf("%d bytes of memory are used for a log of 64 KiB", used)
						}
					}
					if view == output.ViewScreen && !bytes.Equal(got, all) {
						t.Errorf("of %d bytes %d arrived", len(all), len(got))
					}
					if view == output.ViewOutward && int64(len(got)) != h.TextEnd() {
						t.Errorf("of %d bytes of text %d arrived", h.TextEnd(), len(got))
					}
				})
			})
		}
	}
}
