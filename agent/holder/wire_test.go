package holder_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

var record = flag.Bool("record", false, "write testdata/v1.transcript anew; version 1 is frozen, so there is hardly a reason to")

const transcript = "testdata/v1.transcript"

// steps are the events of the transcript: the daemon's calls, and the child's actions.
// Each begins when the one before has settled.
var steps = []struct {
	name string
	call func(b *bench, c *holder.Client) error
}{
	{"stream", func(_ *bench, c *holder.Client) error { return c.StreamFrom(0) }},
	{"print", func(b *bench, _ *holder.Client) error { b.child.Print("hello\r\n"); return nil }},
	{"read", func(_ *bench, c *holder.Client) error { return expect(c, "hello\r\n") }},
	{"taken", func(b *bench, c *holder.Client) error { // the next wait says so
		b.tasks.Go(func() { _ = c.WaitReadable() })
		return nil
	}},
	{"input", func(_ *bench, c *holder.Client) error { _, err := c.Write([]byte("ls\n")); return err }},
	{"resize", func(_ *bench, c *holder.Client) error { return c.Resize(pty.Size{Cols: 132, Rows: 43}) }},
	{"meta", func(_ *bench, c *holder.Client) error { return c.SetMeta([]byte("new meta")) }},
	{"checkpoint", func(_ *bench, c *holder.Client) error { return c.Checkpoint(7, []byte("note")) }},
	{"checkpoint too far", func(_ *bench, c *holder.Client) error { return inverted(c.Checkpoint(700, nil)) }},
	{"forget too early", func(_ *bench, c *holder.Client) error { return inverted(c.Forget(context.Background())) }},
	{"kill", func(_ *bench, c *holder.Client) error { return c.Kill(context.Background(), 1500*time.Millisecond) }},
	{"exit", func(b *bench, _ *holder.Client) error { b.child.End(137); return nil }},
	{"forget", func(_ *bench, c *holder.Client) error { return c.Forget(context.Background()) }},
}

func expect(c *holder.Client, want string) error {
	buf := make([]byte, 100)
	n, err := c.Read(buf)
	if string(buf[:n]) != want {
		return fmt.Errorf("read %q, %v, want %q", buf[:n], err, want)
	}
	return err
}

func inverted(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return nil
}

// scene is a step and the bytes that follow from it.
type scene struct {
	step              string
	daemon, theHolder []byte
}

// plain is s without the features of a hello, which change, and without the nonces and
// proofs, which differ each time: the rest is version 1.
func (s scene) plain() scene {
	if s.step == "hello" {
		s.daemon, s.theHolder = plainWords(s.daemon), plainWords(s.theHolder)
	}
	return s
}

// Where things are in the first words of a side: its hello, and a frame with its proof.
const (
	atFeatures = 14
	atNonce    = 22
	helloSize  = 54
	wordsSize  = 91
)

func plainWords(words []byte) []byte {
	words = bytes.Clone(words)
	clear(words[atFeatures:helloSize])
	clear(words[helloSize+5 : wordsSize])
	return words
}

// proof is a side's proof of the key, computed as the package comment describes.
func proof(label string, daemon, theHolder []byte) string {
	mac := hmac.New(sha256.New, holder.Key())
	for _, part := range [][]byte{[]byte(label), []byte("x"), daemon[atNonce:helloSize], theHolder[atNonce:helloSize]} {
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		mac.Write(part)
	}
	return string(mac.Sum(nil))
}

// greet sends a daemon's hello and returns the holder's.
func greet(conn net.Conn, hello []byte) ([]byte, error) {
	words := make([]byte, wordsSize)
	if _, err := conn.Write(hello); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, words[:helloSize]); err != nil {
		return nil, err
	}
	if _, err := conn.Write(frame(0x0c, proof("tether daemon", hello, words))); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, words[helloSize:]); err != nil {
		return nil, err
	}
	if want := frame(0x49, proof("tether holder", hello, words)); !bytes.Equal(words[helloSize:], want) {
		return nil, fmt.Errorf("the holder proves by %x, want %x", words[helloSize:], want)
	}
	return words, nil
}

// meet sends a holder's hello and returns the daemon's.
func meet(conn net.Conn, hello []byte) ([]byte, error) {
	words := make([]byte, wordsSize)
	if _, err := io.ReadFull(conn, words[:helloSize]); err != nil {
		return nil, err
	}
	if _, err := conn.Write(hello); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(conn, words[helloSize:]); err != nil {
		return nil, err
	}
	if want := frame(0x0c, proof("tether daemon", words, hello)); !bytes.Equal(words[helloSize:], want) {
		return nil, fmt.Errorf("the daemon proves by %x, want %x", words[helloSize:], want)
	}
	_, err := conn.Write(frame(0x49, proof("tether holder", words, hello)))
	return words, err
}

// pieces is a connection that writes at most size bytes at a time.
type pieces struct {
	net.Conn
	size int
}

func (c pieces) Write(p []byte) (n int, err error) {
	for piece := range slices.Chunk(p, c.size) {
		k, err := c.Conn.Write(piece)
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (s scene) String() string {
	return fmt.Sprintf("# %s\n> %x\n< %x\n", s.step, s.daemon, s.theHolder)
}

// tap is a connection that records the written bytes.
type tap struct {
	net.Conn
	mu    sync.Mutex
	wrote []byte
}

func (c *tap) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote = append(c.wrote, p[:n]...)
	return n, err
}

func (c *tap) take() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.wrote
	c.wrote = nil
	return p
}

// play runs the steps between our own client and holder.
func play(t *testing.T) []scene {
	var scenes []scene
	synctest.Test(t, func(t *testing.T) {
		b := newTranscriptBench(t)
		left, right := net.Pipe()
		daemon, theHolder := &tap{Conn: left}, &tap{Conn: right}
		b.tasks.Go(func() { b.held.Serve(theHolder) })
		c := must.Get(holder.Connect(context.Background(), daemon))(t)
		synctest.Wait()
		scenes = append(scenes, scene{"hello", daemon.take(), theHolder.take()})
		for _, s := range steps {
			if err := s.call(b, c); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			synctest.Wait()
			scenes = append(scenes, scene{s.name, daemon.take(), theHolder.take()})
		}
		b.tasks.Wait()
	})
	return scenes
}

func newTranscriptBench(t *testing.T) *bench {
	b := &bench{t: t, child: fake{Child: testkit.NewChild(), tough: true}}
	s := holder.Spec{Meta: []byte("meta")}
	s.Command.Size = pty.Size{Cols: 80, Rows: 24}
	b.start(s)
	return b
}

func readTranscript(t *testing.T) []scene {
	t.Helper()
	f := must.Get(os.Open(transcript))(t)
	defer f.Close()
	var scenes []scene
	for lines := bufio.NewScanner(f); lines.Scan(); {
		mark, rest, _ := strings.Cut(lines.Text(), " ")
		raw, err := hex.DecodeString(rest)
		switch {
		case mark == "#":
			scenes = append(scenes, scene{step: rest})
		case err != nil || len(scenes) == 0:
			t.Fatalf("line %q: %v", lines.Text(), err)
		case mark == ">":
			scenes[len(scenes)-1].daemon = raw
		case mark == "<":
			scenes[len(scenes)-1].theHolder = raw
		}
	}
	return scenes
}

// Version 1 equals the recording, byte for byte, on both sides.
func TestTranscript(t *testing.T) {
	played := play(t)
	if *record {
		var text strings.Builder
		for _, s := range played {
			text.WriteString(s.plain().String())
		}
		must.Do(t, os.WriteFile(transcript, []byte(text.String()), 0o600))
	}
	recorded := readTranscript(t)
	if len(recorded) != len(played) {
		t.Fatalf("%d scenes, %d are recorded", len(played), len(recorded))
	}
	for i, want := range recorded {
		if got := played[i].plain(); got.String() != want.String() {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// The holder answers the recorded bytes of a daemon with the recorded bytes, however they
// arrive.
func TestTranscriptAgainstHolder(t *testing.T) {
	for _, size := range []int{1, 3, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			b := newTranscriptBench(t)
			conn := pieces{b.conn(), size}
			for _, s := range readTranscript(t) {
				var words []byte
				switch s.step {
				case "hello":
					var err error
					if words, err = greet(conn, s.daemon[:helloSize]); err != nil {
						t.Fatal(err)
					}
					s.daemon = nil
				case "print":
					b.child.Print("hello\r\n")
				case "exit":
					b.child.End(137)
				}
				wrote := make(chan struct{})
				b.tasks.Go(func() {
					defer close(wrote)
					_, _ = conn.Write(s.daemon)
				})
				got := make([]byte, len(s.theHolder))
				_, err := io.ReadFull(conn, got[copy(got, words):])
				if s.step == "hello" {
					got = plainWords(got)
				}
				if err != nil || !bytes.Equal(got, s.theHolder) {
					t.Fatalf("%s in pieces of %d: got %x, %v, want %x", s.step, size, got, err, s.theHolder)
				}
				<-wrote
			}
			if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("after the last word: %d bytes, %v", n, err)
			}
			b.tasks.Wait()
		})
	}
}

// The client works with the recorded bytes of a holder, and says the recorded ones.
func TestTranscriptAgainstClient(t *testing.T) {
	for _, size := range []int{1, 3, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{t: t, child: fake{Child: testkit.NewChild()}}
			conn, theirs := net.Pipe()
			scenes := readTranscript(t)
			next := make(chan scene)
			b.tasks.Go(func() {
				defer conn.Close()
				conn := pieces{conn, size}
				for s := range next {
					got := make([]byte, len(s.daemon))
					var err error
					if s.step == "hello" {
						if got, err = meet(conn, s.theHolder[:helloSize]); err == nil {
							got = plainWords(got)
						}
						s.theHolder = s.theHolder[wordsSize:]
					} else {
						_, err = io.ReadFull(conn, got)
					}
					if err != nil || !bytes.Equal(got, s.daemon) {
						t.Errorf("%s: the daemon said %x, %v, want %x", s.step, got, err, s.daemon)
						return
					}
					_, _ = conn.Write(s.theHolder)
					if s.step == "forget" {
						return
					}
				}
			})
			next <- scenes[0]
			c := must.Get(holder.Connect(context.Background(), theirs))(t)
			for i, s := range steps {
				next <- scenes[i+1]
				if s.name == "print" || s.name == "exit" { // the child's part
					synctest.Wait()
					continue
				}
				if err := s.call(b, c); err != nil {
					t.Fatalf("%s: %v", s.name, err)
				}
			}
			close(next)
			if exit := c.Wait(); exit.Code != 137 {
				t.Error(exit)
			}
			b.tasks.Wait()
		})
	}
}

// helloOf is the hello of a program of another time.
func helloOf(low, high uint16, more string) []byte {
	dst := []byte("TETHER-H")
	dst = binary.BigEndian.AppendUint16(dst, uint16(44+len(more)))
	dst = binary.BigEndian.AppendUint16(dst, low)
	dst = binary.BigEndian.AppendUint16(dst, high)
	dst = append(dst, "\xff\xff\xff\xff\xff\xff\xff\xff"...) // it has every feature there will be
	dst = append(dst, strings.Repeat("n", 32)...)
	return append(dst, more...)
}

func frame(kind byte, payload string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload))), payload...)
}

// A daemon two versions newer still speaks version 1 and asks for more than this holder
// knows.
func TestNewerDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTranscriptBench(t)
		scenes := readTranscript(t)
		conn := b.conn()
		words := must.Get(greet(conn, helloOf(1, 3, "and more")))(t)
		b.tasks.Go(func() {
			_, _ = conn.Write(frame(0x81, strings.Repeat("?", 64<<10)))
			_, _ = conn.Write(frame(0x01, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00and more"))
			_, _ = conn.Write(frame(0xff, ""))
		})
		got := make([]byte, len(scenes[0].theHolder))
		if _, err := io.ReadFull(conn, got[copy(got, words):]); err != nil || !bytes.Equal(plainWords(got), scenes[0].theHolder) {
			t.Fatalf("said %x, %v", got, err)
		}
		b.child.Print("hello\r\n")
		data := scenes[2].theHolder
		got = make([]byte, len(data))
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("said %x, %v; want %x", got, err, data)
		}
		conn.Close()
		b.end()
	})
}

// So does a newer holder.
func TestNewerHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, theirs := net.Pipe()
		var tasks sync.WaitGroup
		tasks.Go(func() {
			zero := strings.Repeat("\x00", 8)
			if _, err := meet(conn, helloOf(1, 3, "and more")); err != nil {
				t.Error(err)
			}
			tasks.Go(func() { _, _ = io.Copy(io.Discard, conn) })
			_, _ = conn.Write(frame(0xc1, "news"))
			_, _ = conn.Write(frame(0x41, strings.Repeat(zero, 4)+"\x00\x00\x00\x05\x00\x50\x00\x18"+zero+"and more"))
			_, _ = conn.Write(frame(0x44, "and more"))
			_, _ = conn.Write(frame(0xc2, "more news"))
		})
		c := must.Get(holder.Connect(context.Background(), theirs))(t)
		if c.Pid() != 5 || c.Size() != (pty.Size{Cols: 80, Rows: 24}) {
			t.Errorf("pid %d, size %v", c.Pid(), c.Size())
		}
		stream(t, c, 0)
		tasks.Go(func() { _, _ = conn.Write(frame(0x45, "\x00\x00\x00\x00\x00\x00\x00\x00hello")) })
		check.OK(t, expect(c, "hello"))
		c.Close()
		tasks.Wait()
	})
}

func TestNoCommonVersion(t *testing.T) {
	conn, theirs := net.Pipe()
	go func() {
		_, _ = conn.Write(helloOf(2, 3, ""))
	}()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	_, err := holder.Connect(t.Context(), theirs)
	conn.Close()
	var version *holder.VersionError
	if !errors.As(err, &version) || version.Min != 2 || version.Max != 3 {
		t.Errorf("got %v", err)
	}
}

// What does not follow the framing ends the connection, on either side, at once.
func TestBadFrames(t *testing.T) {
	zero := strings.Repeat("\x00", 8)
	for name, p := range map[string][]byte{
		"unknown kind":        frame(0x7f, ""),
		"the other side's":    frame(0x45, zero+"x"),
		"too large":           {0x03, 0xff, 0xff, 0xff, 0xff},
		"too large, unknown":  {0xff, 0x7f, 0xff, 0xff, 0xff},
		"short":               frame(0x01, "\x00"),
		"no request":          frame(0x04, ""),
		"beyond the end":      frame(0x01, "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\xff\xff"),
		"negative":            frame(0x01, "\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\xff\xff"),
		"taken before stream": frame(0x02, zero),
		"large input":         frame(0x03, "\x00\x00\x00\x01"+strings.Repeat("x", 33<<10)),
		"large meta":          frame(0x07, "\x00\x00\x00\x01"+strings.Repeat("x", 64<<10+1)),
		"large note":          frame(0x08, "\x00\x00\x00\x01"+zero+strings.Repeat("x", 64<<10+1)),
		"stream twice":        append(frame(0x01, zero+"\x00\x00\xff\xff"), frame(0x01, zero+"\x00\x00\xff\xff")...),
		"many kills":          bytes.Repeat(frame(0x05, "\x00\x00\x00\x01\x00\x00\x00\x00"), 2),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, holder.Spec{})
				b.child.blocked = make(chan struct{})
				defer b.end()
				conn := b.conn()
				must.Get(greet(conn, helloOf(1, 1, "")))(t)
				b.tasks.Go(func() { _, _ = conn.Write(p) })
				began := time.Now()
				if _, err := io.Copy(io.Discard, conn); err != nil || time.Since(began) > time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}

// A daemon that breaks the framing and reads nothing does not keep its connection,
// although the holder is writing to it.
func TestBadFrameWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		ours, theirs := net.Pipe()
		var served atomic.Bool
		b.tasks.Go(func() {
			b.held.Serve(theirs)
			served.Store(true)
		})
		must.Get(greet(ours, helloOf(1, 1, "")))(t)
		synctest.Wait() // the holder writes its state, which nobody reads
		must.Get(ours.Write(frame(0x05, "")))(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		if !served.Load() {
			t.Error("the connection is still served")
		}
		ours.Close()
		b.end()
	})
}
