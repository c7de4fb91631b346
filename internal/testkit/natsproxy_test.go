package testkit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A proxy of NATS drops whole messages and no line between them, the same ones for the
// same seed; partitioned it passes nothing until it is joined again.
func TestNATSProxy(t *testing.T) {
	testkit.Leaks(t)
	server := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer server.Close()
	const messages = 2000
	run := func() (got string, lost int) {
		p := testkit.NewNATSProxy(t, server.Addr().String(), testkit.NATSFaults{Seed: 7, Lost: 0.01})
		c := must.Get(net.Dial("tcp", strings.TrimPrefix(p.URL, "nats://")))(t)
		defer c.Close()
		s := must.Get(server.Accept())(t)
		defer s.Close()
		p.Partition(true)
		go func() {
			for n := range messages {
				body := fmt.Sprintf("%d\r\nPING\r\n", n)
				fmt.Fprintf(c, "PUB a.b reply %d\r\n%s\r\nPING\r\nHPUB a 2 %d\r\n%s\r\n", len(body), body, len(body), body)
			}
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		_ = s.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := s.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes passed the partition, %v", n, err)
		}
		_ = s.SetReadDeadline(time.Time{})
		p.Partition(false)
		all := must.Get(io.ReadAll(bufio.NewReader(s)))(t)
		return string(all), p.Lost()
	}
	got, lost := run()
	if pings := strings.Count(got, "\r\nPING\r\n"); pings+lost != 3*messages || lost < messages/100 || lost > messages/10 {
		t.Errorf("%d lines came, %d messages were dropped", pings, lost)
	}
	if again, _ := run(); again != got {
		t.Error("the same seed drops other messages")
	}
}
