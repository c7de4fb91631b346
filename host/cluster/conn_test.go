package cluster_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"tether/host"
	"tether/host/sessions"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// connNodes are two nodes, of which the second serves streams.
func connNodes(t *testing.T, serve func(context.Context, net.Conn)) (servers *testkit.NATS, a, b *node) {
	t.Helper()
	testkit.Leaks(t)
	servers = testkit.StartJetStream(t, tools)
	a = start(t, servers.URLs, host.Options{})
	b = startWith(t, servers.URLs, func(n *node, _ *host.Options) { n.of.Streams(serve) })
	return servers, a, b
}

// dialNode opens a stream to a node that may not be known yet.
func dialNode(t *testing.T, from, to *node) (c net.Conn) {
	t.Helper()
	testkit.Eventually(t, patience, "a stream is opened", func() bool {
		var err error
		c, err = from.of.Dial(t.Context(), to.of.ID())
		return err == nil
	})
	t.Cleanup(func() { c.Close() })
	return c
}

// echo sends back what comes, until it ends.
func echo(_ context.Context, c net.Conn) { _, _ = io.Copy(c, c) }

// ends fails unless a stream that is read ends while somebody writes to it, as the pings
// of HTTP/2 do.
func ends(t *testing.T, c net.Conn, what string) {
	t.Helper()
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(io.Discard, c) }()
	testkit.Eventually(t, patience, what+": the stream ends", func() bool {
		_, err := c.Write([]byte("ping"))
		return err != nil
	})
	select {
	case <-read:
	case <-time.After(patience):
		t.Errorf("%s: a read goes on", what)
	}
}

// Each byte arrives once and in order, in both directions at once, whatever the sizes of
// the writes; and the end of one side is that of the other.
func TestStreamsBetweenNodes(t *testing.T) {
	_, a, b := connNodes(t, echo)
	c := dialNode(t, a, b)
	sent := make([]byte, 3<<20)
	seed := rand.New(rand.NewPCG(1, 2))
	for i := range sent {
		sent[i] = byte(seed.Uint32())
	}
	go func() {
		for rest := sent; len(rest) > 0; {
			n := min(len(rest), 1+int(seed.Uint32()%(40<<10)))
			if _, err := c.Write(rest[:n]); err != nil {
				t.Error(err)
				return
			}
			rest = rest[n:]
		}
	}()
	got := make([]byte, len(sent))
	must.Do(t, c.SetReadDeadline(time.Now().Add(patience)))
	if _, err := io.ReadFull(c, got); err != nil || sha256.Sum256(got) != sha256.Sum256(sent) {
		t.Errorf("%v; equal %t", err, bytes.Equal(got, sent))
	}
	other := dialNode(t, a, b)
	c.Close()
	must.Get(other.Write([]byte("x")))(t)
	must.Get(io.ReadFull(other, make([]byte, 1)))(t)
	testkit.Eventually(t, patience, "both sides have forgotten the first", func() bool { return a.of.Conns() == 1 && b.of.Conns() == 1 })
	if _, err := a.of.Dial(t.Context(), "nosuchnode"); !errors.Is(err, sessions.ErrNoNode) {
		t.Errorf("a node that does not exist: %v", err)
	}
}

// A stream ends when its node ends, with or without a word, and when the engine is lost.
func TestStreamsEndWithTheirNodes(t *testing.T) {
	for name, end := range map[string]func(servers *testkit.NATS, b *node){
		"it leaves": func(_ *testkit.NATS, b *node) { b.end() },
		"it dies":   func(_ *testkit.NATS, b *node) { b.of.Kill() },
		"no engine": func(servers *testkit.NATS, _ *node) {
			for i := range 3 {
				servers.Kill(i)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers, a, b := connNodes(t, echo)
			c := dialNode(t, a, b)
			must.Get(c.Write([]byte("x")))(t)
			must.Get(io.ReadFull(c, make([]byte, 1)))(t)
			end(servers, b)
			ends(t, c, name)
		})
	}
}

// A message that was lost ends the stream, and nothing after it is taken for what was
// lost. A side that does not read costs a bounded amount, and ends only its own stream.
func TestStreamsLoseNothingSilently(t *testing.T) {
	hold := make(chan struct{})
	_, a, b := connNodes(t, func(ctx context.Context, c net.Conn) {
		select {
		case <-hold:
			echo(ctx, c)
		case <-ctx.Done():
		}
	})
	c := dialNode(t, a, b)
	go func() {
		for {
			if _, err := c.Write(make([]byte, 16<<10)); err != nil {
				return
			}
		}
	}()
	ends(t, c, "it is not read")
	close(hold)
	other := dialNode(t, a, b)
	must.Get(other.Write([]byte("x")))(t)
	must.Get(io.ReadFull(other, make([]byte, 1)))(t)
	a.of.Skip()
	_, _ = other.Write([]byte("y"))
	ends(t, other, "a message is missing")
}
