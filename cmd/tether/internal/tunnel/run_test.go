package tunnel_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/cmd/tether/internal/tunnel"
	"tether/internal/testkit/must"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, url, want string }{
		{"none", "", "none"},
		{"tailscale", "", "tailscale serve"},
		{"tailscale:funnel", "", "tailscale funnel"},
		{"cloudflared", "", "cloudflared"},
		{"ssh:dev.example", "", "ssh to dev.example"},
		{"ssh:me@dev.example:2000", "https://t.example/", "ssh to me@dev.example"},
		{"ssh:", "", ""},
		{"ssh:-v", "", ""},
		{"ssh:-oProxyCommand=x:2", "", ""},
		{"ssh:a b", "", ""},
		{"ssh:a;b", "", ""},
		{"ssh:a@-b", "", ""},
		{"ssh:a:0", "", ""},
		{"ssh:a:65536", "", ""},
		{"ssh:a:1:2", "", ""},
		{"ssh:a", "http://t.example", ""},
		{"ssh:a", "https://t.example/path", ""},
		{"ssh:a", "https://u@t.example", ""},
		{"ssh:a", "https://", ""},
		{"none", "https://t.example", ""},
		{"Tailscale", "", ""},
		{"", "", ""},
	} {
		w, err := tunnel.Parse(c.name, c.url)
		if w.Name != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q %q: %q, %v", c.name, c.url, w.Name, err)
		}
		if err == nil && w.Readers == "" {
			t.Errorf("%q does not say who can read", c.name)
		}
	}
}

func TestFound(t *testing.T) {
	names := func(have string) string {
		var all []string
		for _, w := range tunnel.Found(func(p string) (string, error) {
			if strings.Contains(have, p) {
				return p, nil
			}
			return "", errors.New("none")
		}) {
			all = append(all, w.Name)
		}
		return strings.Join(all, ", ")
	}
	for have, want := range map[string]string{"": "none", "ssh": "none", "cloudflared": "cloudflared, none", "cloudflared tailscale": "tailscale serve, cloudflared, none"} {
		if got := names(have); got != want {
			t.Errorf("with %q: %s, want %s", have, got, want)
		}
	}
}

// script is what a program prints in each of its runs, and how long it then runs on.
type script struct {
	text []string
	runs time.Duration
	args []string // of each run
}

func (s *script) start(ctx context.Context, _ string, args []string) (io.ReadCloser, error) {
	n := len(s.args)
	s.args = append(s.args, strings.Join(args, " "))
	if n >= len(s.text) {
		return nil, errors.New("no such program")
	}
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, s.text[n]) // fails if nobody reads any more
		select {
		case <-time.After(s.runs):
		case <-ctx.Done():
		}
		w.Close()
	}()
	return r, nil
}

// told are a way's events as lines.
func told(all *[]string) tunnel.Events {
	say := func(format string, args ...any) { *all = append(*all, fmt.Sprintf(format, args...)) }
	return tunnel.Events{
		Up:   func(url string) { say("up %s", url) },
		Down: func(why string, pause time.Duration) { say("down %s, %v", why, pause) },
		Says: func(line string) { say("says %s", line) },
	}
}

// A way that closes is opened again, after pauses that grow, and at the same port of the
// far end.
func TestAWayIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := must.Get(tunnel.Parse("ssh:far", ""))(t)
		open := "debug1: remote forward success for: listen 127.0.0.1:0, connect 127.0.0.1:80\nAllocated port 4000 for remote forward to 127.0.0.1:80\n"
		again := "debug1: remote forward success for: listen 127.0.0.1:4000, connect 127.0.0.1:80\n"
		s := &script{runs: time.Second, text: []string{open + "client_loop: send disconnect: Broken pipe\n", "Connection refused\n", "", again}}
		var all []string
		ctx, cancel := context.WithTimeout(t.Context(), 10500*time.Millisecond)
		defer cancel()
		if err := w.Run(ctx, 80, s.start, told(&all)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		want := `up http://127.0.0.1:4000
down client_loop: send disconnect: Broken pipe, 1s
says Connection refused
down Connection refused, 2s
down it has ended, 4s
up http://127.0.0.1:4000`
		if got := strings.Join(all, "\n"); got != want {
			t.Errorf("told\n%s\nwant\n%s", got, want)
		}
		for i, port := range []string{":0:", ":4000:", ":4000:", ":4000:"} {
			if !strings.Contains(s.args[i], "-R 127.0.0.1"+port+"127.0.0.1:80 -- far") {
				t.Errorf("run %d: %s", i, s.args[i])
			}
		}
	})
}

// A way that never opens is not tried again; one that was not chosen has to open in time.
func TestAWayThatDoesNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []string
		w, _ := tunnel.Parse("cloudflared", "")
		s := &script{text: []string{"x INF |  https://api.trycloudflare.com  |\nx ERR failed to request quick Tunnel: Post \"https://api.trycloudflare.com/tunnel\"\n"}}
		if err := w.Run(t.Context(), 80, s.start, told(&all)); err == nil || !strings.Contains(err.Error(), "failed to request quick Tunnel") || len(s.args) != 1 {
			t.Error(err, s.args)
		}
		w, _ = tunnel.Parse("tailscale", "")
		s = &script{runs: time.Hour, text: []string{"To enable, visit: https://login.tailscale.com/f/serve\n"}}
		if err := w.RunWithin(t.Context(), time.Minute, 80, s.start, told(&all)); !errors.Is(err, tunnel.ErrSilent) {
			t.Error(err)
		}
		if got := strings.Join(all, "\n"); strings.Contains(got, "up ") || !strings.Contains(got, "says To enable, visit") {
			t.Error(got)
		}
		s = &script{runs: time.Hour, text: []string{"https://a.tail1.ts.net/\n"}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := w.RunWithin(ctx, time.Minute, 80, s.start, told(&all)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
