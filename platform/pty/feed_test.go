//go:build linux || darwin

package pty_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// fed starts a shell with a feed, and returns all of its output at the end.
func fed(t *testing.T, script string) (*pty.PTY, func() string) {
	t.Helper()
	p := must.Get(pty.Start(pty.Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Feed: true}))(t)
	printed := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(p)
		printed <- strings.ReplaceAll(string(all), "\r\n", "\n")
	}()
	t.Cleanup(func() { p.Close() })
	return p, func() string {
		t.Helper()
		p.Wait()
		return <-printed
	}
}

// A feed passes every byte, however many, and then the end of the input; only the input
// is no terminal, which neither echoes nor edits it.
func TestFeed(t *testing.T) {
	testkit.Leaks(t)
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	copy(data, "\x03\x04\x15\x7f\r\n\x11\x13\x1a\x1c")
	name := t.TempDir() + "/got"
	p, printed := fed(t, "test -t 0; echo $?; test -t 1 && test -t 2 && stty size </dev/tty; cat >"+name)
	var off int64
	for piece := range bytes.SplitSeq(data, []byte("\n")) { // pieces of all lengths
		for part := append(piece, '\n'); len(part) > 0; {
			next := must.Get(p.Feed(t.Context(), off, part, false))(t)
			part, off = part[next-off:], next
		}
	}
	if next, err := p.Feed(t.Context(), off, nil, true); next != off || err != nil {
		t.Errorf("the end: %d, %v", next, err)
	}
	if got := printed(); got != "1\n24 80\n" {
		t.Errorf("printed %q", got)
	}
	if got, err := os.ReadFile(name); !bytes.Equal(got, append(data, '\n')) || err != nil {
		t.Errorf("%d bytes arrived, of %d: %v", len(got), len(data)+1, err)
	}
}

// A second writer continues where the first one has stopped: nothing is lost, and nothing
// comes twice.
func TestFeedContinues(t *testing.T) {
	testkit.Leaks(t)
	p, printed := fed(t, "cat")
	for _, step := range []struct {
		off  int64
		text string
		next int64
	}{{0, "abc", 3}, {0, "", 3}, {1, "bcde", 5}, {2, "cd", 5}, {5, "f\n", 7}} {
		if next, err := p.Feed(t.Context(), step.off, []byte(step.text), false); next != step.next || err != nil {
			t.Errorf("%q at %d: %d, %v; want %d", step.text, step.off, next, err, step.next)
		}
	}
	if _, err := p.Feed(t.Context(), 8, []byte("x"), false); err == nil {
		t.Error("input was accepted behind a gap")
	}
	if _, err := p.Feed(t.Context(), 0, nil, true); err != nil {
		t.Error(err)
	}
	if got := printed(); got != "abcdef\n" {
		t.Errorf("printed %q", got)
	}
	if _, err := p.Feed(t.Context(), 7, []byte("x"), false); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// A program that does not read makes the writer wait. A piece that has not begun can be
// given up, one that has begun stays, and the end comes behind it.
func TestFeedWaits(t *testing.T) {
	testkit.Leaks(t)
	hold := t.TempDir() + "/go"
	p, printed := fed(t, "until test -e "+hold+"; do sleep 0.01; done; wc -c")
	const size = 300_000 // more than a pipe has room for
	begun := make(chan error, 1)
	go func() {
		_, err := p.Feed(context.Background(), 0, make([]byte, size), false)
		begun <- err
	}()
	testkit.Eventually(t, testkit.Patience, "the piece is accepted", func() bool {
		next, err := p.Feed(t.Context(), 0, nil, false)
		return next == size && err == nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if next, err := p.Feed(ctx, size, []byte("never"), false); !errors.Is(err, context.Canceled) || next != size {
		t.Errorf("a piece without a turn: %d, %v", next, err)
	}
	if _, err := p.Feed(t.Context(), 0, nil, true); err != nil { // does not wait
		t.Error(err)
	}
	must.Do(t, os.WriteFile(hold, nil, 0o600))
	check.OK(t, <-begun)
	if got := strings.TrimSpace(printed()); got != "300000" {
		t.Errorf("%s bytes arrived", got)
	}
}

// The writer learns that the program has closed its input or has ended, and Close ends a
// writer that waits.
func TestFeedOfAProgramThatReadsNoMore(t *testing.T) {
	testkit.Leaks(t)
	p, printed := fed(t, "head -n 1; exec <&-; kill -STOP $$; exit")
	defer func() { _ = p.Kill(context.Background(), 0) }()
	off, err := p.Feed(t.Context(), 0, []byte("one\n"), false)
	check.OK(t, err)
	testkit.Eventually(t, testkit.Patience, "the writer learns that nobody reads", func() bool {
		off, err = p.Feed(t.Context(), off, []byte("two\n"), false)
		return errors.Is(err, os.ErrClosed)
	})
	check.OK(t, p.Kill(t.Context(), 0))
	if got := printed(); got != "one\n" {
		t.Errorf("printed %q", got)
	}

	q, _ := fed(t, "kill -STOP $$")
	ended := make(chan error, 1)
	go func() {
		_, err := q.Feed(context.Background(), 0, make([]byte, 300_000), false)
		ended <- err
	}()
	testkit.Eventually(t, testkit.Patience, "it writes", func() bool {
		next, _ := q.Feed(t.Context(), 0, nil, false)
		return next > 0
	})
	q.Close()
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	check.OK(t, q.Kill(t.Context(), 0))
	if _, err := start(t, nil, "/bin/true").Feed(t.Context(), 0, nil, false); !errors.Is(err, pty.ErrNoFeed) {
		t.Errorf("a program with a terminal as its input: %v", err)
	}
}
