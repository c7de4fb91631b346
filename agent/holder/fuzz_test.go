package holder_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// seeds are the messages of either side in the transcript.
func seeds(f *testing.F, theHolder bool) {
	text := must.Get(os.ReadFile(transcript))(f)
	var whole []byte
	for line := range strings.Lines(string(text)) {
		if mark, rest, _ := strings.Cut(strings.TrimSpace(line), " "); mark != "#" && (mark == "<") == theHolder {
			part := unhex(f, rest)
			whole = append(whole, part...)
			f.Add(part)
		}
	}
	f.Add(whole)
	for cut := range 20 {
		f.Add(whole[:len(whole)*cut/20])
	}
}

func unhex(f *testing.F, text string) []byte {
	return must.Get(hex.DecodeString(text))(f)
}

// FuzzHolder: with any input on a connection the holder lives, keeps every byte of the
// child for which it has room, and serves the next daemon.
func FuzzHolder(f *testing.F) {
	seeds(f, false)
	f.Add(frame(0x01, strings.Repeat("\x00", 11)+"\xff"))
	f.Add(frame(0x0e, strings.Repeat("\x00", 9)))
	f.Fuzz(func(t *testing.T, said []byte) {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{t: t, child: fake{Child: testkit.NewChild(), tough: true}}
			b.start(holder.Spec{})
			conn := b.conn()
			if !bytes.HasPrefix(said, []byte("TETHER-H")) { // most of the time go on from where it gets interesting
				must.Get(greet(conn, helloOf(1, 1, "")))(t)
			}
			b.tasks.Go(func() { _, _ = io.Copy(io.Discard, conn) })
			<-b.print(0, logBytes/2)
			_, _ = conn.Write(said)
			conn.Close()
			synctest.Wait() // it may have said hello, and would take over from the next daemon
			<-b.print(logBytes/2, logBytes/2)
			c := b.stream(0)
			b.take(c, 0, logBytes)
			check.OK(t, c.SetMeta(said[:min(len(said), 64<<10)]))
			c.Close()
			b.end()
		})
	})
}

// FuzzClient: with any messages of a holder, the result of Read is contiguous by the
// announced offsets, the client stops when the connection does, and it holds no more than
// its window.
func FuzzClient(f *testing.F) {
	seeds(f, true)
	zero := strings.Repeat("\x00", 8)
	f.Add(frame(0x45, zero+"hello"))
	f.Add(append(frame(0x45, zero+"hello"), frame(0x45, strings.Repeat("\x01", 8)+"after a gap")...))
	f.Fuzz(func(t *testing.T, said []byte) {
		synctest.Test(t, func(t *testing.T) {
			conn, theirs := net.Pipe()
			go func() {
				if bytes.HasPrefix(said, []byte("TETHER-H")) {
					go func() { _, _ = io.Copy(io.Discard, conn) }()
				} else { // most of the time go on from where it gets interesting
					if _, err := meet(conn, helloOf(1, 1, "")); err != nil {
						t.Error(err)
					}
					go func() { _, _ = io.Copy(io.Discard, conn) }()
					_, _ = conn.Write(frame(0x41, strings.Repeat("\x00", 48)))
					_, _ = conn.Write(frame(0x44, ""))
				}
				_, _ = conn.Write(said)
				conn.Close()
			}()
			c, err := holder.Connect(t.Context(), theirs)
			if err != nil {
				return
			}
			defer c.Close()
			if err := c.StreamFrom(c.Base()); err != nil {
				return
			}
			<-c.Done() // nobody reads: all that came is held
			if n, _ := io.Copy(io.Discard, gapless{c}); n > holder.Window || n > int64(len(said)) {
				t.Errorf("%d bytes of output from %d", n, len(said))
			}
			c.Wait()
			if err := c.Resize(pty.Size{Cols: 1, Rows: 1}); err == nil {
				t.Error("a request after the end")
			}
			if _, ended := c.Exit(); (c.Kill(context.Background(), time.Hour) == nil) != ended {
				t.Errorf("a kill after the end; the child has ended: %t", ended)
			}
		})
	})
}

// gapless reads over gaps.
type gapless struct{ c *holder.Client }

func (g gapless) Read(p []byte) (int, error) {
	n, err := g.c.Read(p)
	if gap, ok := err.(*holder.GapError); ok && gap.Size() > 0 {
		return n, nil
	}
	return n, err
}
