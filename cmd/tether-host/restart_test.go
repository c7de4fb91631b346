package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// restartPatience is for processes that wait for each other on a busy machine.
const restartPatience = 4 * time.Minute

// aFlood prints numbered lines for two seconds, 200 KB, for each of the files part0,
// part1 and so on, as soon as it exists, until the file stop exists: as much on a busy
// machine as on an idle one.
const aFlood = `i=0
while [ ! -e "$PARTS/stop" ]; do
	if [ -e "$PARTS/part$((i/8000))" ]; then
		n=0
		while [ $n -lt 400 ]; do i=$((i+1)); n=$((n+1)); echo "line $i of the flood"; done
	fi
	sleep 0.1
done
echo "end $i"`

// floodSize is how many bytes there are of so many parts.
func floodSize(parts int) (size int) {
	lines := parts * 8000
	for low := 1; low <= lines; low *= 10 { // numbers with as many digits
		size += (min(lines, 10*low-1) - low + 1) * len(floodLine(low))
	}
	return size
}

func floodLine(n int) string { return fmt.Sprintf("line %d of the flood\r\n", n) }

// machineOf is a daemon with a home of its own.
func (s *stage) machine(t *testing.T) *stage {
	t.Helper()
	home := must.Get(testkit.MakeHome())(t)
	m := &stage{t: t, dir: s.dir, env: append(s.env[:len(s.env):len(s.env)], "TETHER_HOME="+home, "PARTS="+s.dir)}
	t.Cleanup(func() {
		_ = m.command("tether", "stop").Run()
		check.OK(t, testkit.RemoveHome(home))
	})
	return m
}

func (s *stage) do(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// host starts tether-host as a process of its own and waits until it accepts connections.
// An address that it had before may be another connection's own end for a moment.
func (s *stage) host(t *testing.T, listen string, args ...string) (c *exec.Cmd, address string) {
	t.Helper()
	testkit.Eventually(t, patience, "the address is free", func() bool {
		c = s.command("tether-host", append([]string{"--listen", listen, "--tokens", filepath.Join(s.dir, "state", "tokens.json"),
			"--token-file", filepath.Join(s.dir, "own.token")}, args...)...)
		var said testkit.Output
		c.Stderr = &said
		out := must.Get(c.StdoutPipe())(t)
		must.Do(t, c.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		_, at, ok := strings.Cut(strings.TrimSpace(line), "READY ws://")
		if address = at; ok && err == nil {
			return true
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		if !strings.Contains(said.String(), "in use") {
			t.Fatalf("the host says %q, %v: %s", line, err, said.String())
		}
		return false
	})
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c, address
}

// audience follows all terminals of a host across its restarts.
type audience struct {
	mu    sync.Mutex
	texts map[string][]byte // by URI
	ended map[string]bool
}

// watch runs until the test ends.
func (a *audience) watch(t *testing.T, e client.Endpoint) {
	a.texts, a.ended = map[string][]byte{}, map[string]bool{}
	ctx, cancel := context.WithCancel(context.Background())
	o := client.NewObserver(client.ObserverOptions{Endpoint: e, ClientID: "audience", ContentLimit: 16 << 20, QueueLimit: 16 << 20})
	var all sync.WaitGroup
	all.Go(func() { _ = o.Run(ctx) }) // until the test ends
	all.Go(func() {
		for {
			ev, err := o.Next(ctx)
			if err != nil {
				return
			}
			for _, one := range ev.Terminals {
				o.Follow(one.Resource)
			}
			a.take(ev)
		}
	})
	t.Cleanup(func() { cancel(); all.Wait() })
}

func (a *audience) take(ev client.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch ev.Kind {
	case client.Resync:
		a.texts[ev.Terminal], a.ended[ev.Terminal] = []byte(ev.State.Text()), ev.State.Lifecycle.Exited()
	case client.Data:
		a.texts[ev.Terminal] = append(a.texts[ev.Terminal], ev.Data...)
	case client.Action:
		if _, over := ev.Action.(ahp.TerminalExited); over {
			a.ended[ev.Terminal] = true
		}
	}
}

// await waits until there are so many bytes, or more, of each of n terminals.
func (a *audience) await(t *testing.T, n, size int, what string) {
	t.Helper()
	testkit.Eventually(t, restartPatience, what, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		there := 0
		for _, text := range a.texts {
			if len(text) >= size {
				there++
			}
		}
		return there == n
	})
}

// A host that is stopped or killed while machines flood it, and started again, has all
// their terminals again, and who watched them has every byte once.
func TestRestartUnderLoad(t *testing.T) {
	s := newStage(t)
	const machines, lent = 2, 2
	roomy := []string{"--grace", "30m", "--scrollback", "8000000"}
	server, address := s.host(t, "127.0.0.1:0", roomy...)
	url := "ws://" + address
	for n := range machines {
		m := s.machine(t)
		token := filepath.Join(s.dir, fmt.Sprint("token-", n))
		once := s.do(t, "tether-host", "token", "create", fmt.Sprint("machine-", n), "--once", "--tokens", filepath.Join(s.dir, "state", "tokens.json"))
		must.Do(t, os.WriteFile(token, []byte(once), 0o600))
		m.do(t, "tether", "pair", "--token-file", token, url)
		for range lent {
			m.do(t, "tether", "run", "--detach", "--", "/bin/sh", "-c", aFlood)
		}
	}
	own := must.Get(os.ReadFile(filepath.Join(s.dir, "own.token")))(t)
	var a audience
	a.watch(t, client.Endpoint{URL: url, Token: strings.TrimSpace(string(own))})
	for part, end := range []struct {
		name   string
		signal syscall.Signal
		status int
	}{{"stopped", syscall.SIGTERM, 0}, {"killed", syscall.SIGKILL, -1}} {
		must.Do(t, os.WriteFile(filepath.Join(s.dir, fmt.Sprint("part", part)), nil, 0o600))
		a.await(t, machines*lent, floodSize(part)+20_000, "all terminals flood the host that will be "+end.name)
		must.Do(t, server.Process.Signal(end.signal))
		if err := server.Wait(); server.ProcessState.ExitCode() != end.status {
			t.Errorf("%s, its status is %v, want %d", end.name, err, end.status)
		}
		server, _ = s.host(t, address, roomy...)
		a.await(t, machines*lent, floodSize(part+1), "all terminals go on after the host was "+end.name)
	}
	must.Do(t, os.WriteFile(filepath.Join(s.dir, "stop"), nil, 0o600))
	testkit.Eventually(t, restartPatience, "the ends", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		n := 0
		for _, over := range a.ended {
			if over {
				n++
			}
		}
		return n == machines*lent
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	for uri, text := range a.texts {
		if err := whole(string(text)); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// whole returns an error if the text of an ended flood is incomplete.
func whole(text string) error {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line == fmt.Sprintf("end %d\r\n", n-1) {
			if at := strings.LastIndex(text, line); at+len(line) != len(text) {
				return fmt.Errorf("after the end comes %.200q", text[at:])
			}
			return nil
		}
		if want := floodLine(n); line != want {
			return fmt.Errorf("in line %d of %d bytes: %.200q, want %q", n, len(text), line, want)
		}
	}
	return fmt.Errorf("no end after %d lines", n)
}

// The first signal waits for slow clients, the second does not.
func TestSecondSignal(t *testing.T) {
	s := newStage(t)
	server, address := s.host(t, "127.0.0.1:0", "--drain", "1h")
	slow := must.Get(net.Dial("tcp", address))(t)
	defer slow.Close()
	fmt.Fprintf(slow, "POST /login HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
		"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n", address, address)
	if line, err := bufio.NewReader(slow).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("the host reads no form: %q, %v", line, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	must.Do(t, server.Process.Signal(syscall.SIGTERM))
	testkit.Eventually(t, restartPatience, "nobody is let in", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	select {
	case err := <-ended:
		t.Skipf("it ended, %v, before the second signal: the slow request was given up", err)
	default:
	}
	testkit.Eventually(t, restartPatience, "the end", func() bool { // the first may still be on its way
		_ = server.Process.Signal(syscall.SIGTERM)
		return len(ended) > 0
	})
	switch err := <-ended; server.ProcessState.ExitCode() {
	case -1:
	case 0:
		t.Skip("the second signal came later than the slow request may take")
	default:
		t.Errorf("it ended with %v", err)
	}
}

// Nobody takes over a machine by its clientId, also not in the moment after a restart in
// which the host knows no client.
func TestForgedClientIDAfterARestart(t *testing.T) {
	testkit.Leaks(t)
	file := filepath.Join(t.TempDir(), "state", "tokens.json")
	laptop := command(t, exitOK, "token", "create", "laptop", "--tokens", file)
	thief := command(t, exitOK, "token", "create", "thief", "--tokens", file)
	lend := func(r *running, token string) error {
		c, err := connect(t, r, token, client.Options{ClientID: "laptops"})
		if err != nil {
			return err
		}
		return c.CreateTerminal(t.Context(), ahp.CreateTerminalParams{Channel: "ahp-terminal:/a", Claim: ahp.ClientClaim("laptops"), ExecutionTarget: ahp.TargetClient})
	}
	r := start(t, "--token", ownToken, "--tokens", file)
	must.Do(t, lend(r, laptop))
	r.end(t)
	again := start(t, "--token", ownToken, "--tokens", file)
	for _, token := range []string{thief, ownToken} {
		err := lend(again, token)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != ahp.CodePermissionDenied {
			t.Errorf("as the laptop: %v, want that it is refused", err)
		}
	}
	if err := lend(again, laptop); err != nil {
		t.Errorf("the laptop itself: %v", err)
	}
}
