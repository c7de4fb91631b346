package holder_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// checksum is a child that waits for a file and then prints length and checksum of its
// standard input.
func checksum(t testing.TB) (c pty.Command, begin func()) {
	file := filepath.Join(t.TempDir(), "begin")
	c = pty.Command{Path: self(t), Args: []string{"wait", "wait", "checksum", file}, Feed: true}
	return c, func() {
		must.Do(t, os.WriteFile(file, nil, 0o600))
	}
}

// A daemon that is replaced while it writes the child's standard input, which the child
// does not read yet, loses no byte, and the next daemon writes none twice.
func TestFeedOverDaemons(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	command, begin := checksum(t)
	c := spawn(t, o, holder.Spec{ID: "x", Command: command})
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	feed := func(c *holder.Client) error {
		off, err := c.Feed(t.Context(), 0, nil, false)
		for off < int64(len(data)) && err == nil {
			off, err = c.Feed(t.Context(), off, data[off:], false)
		}
		return err
	}
	for range 3 {
		blocked := make(chan error, 1)
		go func(c *holder.Client) { blocked <- feed(c) }(c)
		least := int64(64 << 10) // of a pipe's room
		testkit.Eventually(t, testkit.Patience, "the pipe is full", func() bool {
			off, err := c.Feed(t.Context(), 0, nil, false)
			return off > least && err == nil
		})
		next := dial(t, o, "x")
		if err := <-blocked; !errors.Is(err, holder.ErrReplaced) {
			t.Errorf("the first daemon's piece: %v", err)
		}
		c = next
	}
	begin()
	must.Do(t, feed(c))
	must.Get(c.Feed(t.Context(), 0, nil, true))(t)
	stream(t, c, 0)
	if got, want := strings.TrimSpace(all(t, c)), fmt.Sprint(len(data), crc32.ChecksumIEEE(data)); got != want {
		t.Errorf("the child has read %s, want %s", got, want)
	}
}

// The standard input of a child ends when no daemon has come to write it, however the
// last one has left.
func TestFeedEndsWithoutADaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, child: fake{Child: testkit.NewChild()}}
		child := &fedChild{fake: b.child}
		b.hold(holder.Spec{}, child)
		defer b.end()
		c := b.stream(0)
		must.Get(c.Feed(t.Context(), 0, []byte("x"), false))(t)
		time.Sleep(time.Hour)
		if child.unfed != 1 { // by the connection itself, before Feed
			t.Errorf("with a daemon it was told %d times that there is no writer", child.unfed)
		}
		c.Close()
		synctest.Wait()
		if child.unfed != 2 {
			t.Errorf("after the daemon's end it was told %d times", child.unfed)
		}
	})
}

// fedChild counts how often it is told that nobody writes its standard input.
type fedChild struct {
	fake
	unfed int
}

func (c *fedChild) Feed(_ context.Context, off int64, p []byte, _ bool) (int64, error) {
	return off + int64(len(p)), nil
}

func (c *fedChild) Unfed() { c.unfed++ }
