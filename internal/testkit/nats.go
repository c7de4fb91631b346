package testkit

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit/must"
)

// NATS is one or more NATS servers on loopback; several form one cluster. Its methods are
// for the test's goroutine alone.
type NATS struct {
	URLs string // of all servers, separated by commas

	t     testing.TB
	dir   string
	ports []int // for clients
	args  [][]string
	runs  []*natsRun // nil while a server is down
}

// natsRun is a running server.
type natsRun struct {
	process *os.Process
	ended   chan struct{} // closed when the process has ended
}

// StartNATS starts that many servers, each with args, and ends them with the test. It
// skips the test where the server is not installed; tools is the path of bin/tools.
func StartNATS(t testing.TB, tools string, servers int, args ...string) *NATS {
	t.Helper()
	Unix(t, "scripts/test-tools.sh installs nats-server for the system that runs it")
	program, err := filepath.Abs(filepath.Join(tools, "nats-server"))
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Skip("nats-server is not installed: scripts/test-tools.sh installs it")
	}
	n := &NATS{t: t, dir: t.TempDir(), runs: make([]*natsRun, servers)}
	var routes, urls []string
	var clusterPorts []int
	for range servers {
		n.ports, clusterPorts = append(n.ports, FreePort(t)), append(clusterPorts, FreePort(t))
	}
	for i := range servers {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", n.ports[i]))
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", clusterPorts[i]))
	}
	n.URLs = strings.Join(urls, ",")
	for i := range servers {
		one := append([]string{program, "-a", "127.0.0.1", "-p", fmt.Sprint(n.ports[i]), "-n", fmt.Sprint("n", i)}, args...)
		if servers > 1 {
			one = append(one, "--cluster_name", "test", "--cluster", routes[i], "--routes", strings.Join(routes, ","))
		}
		n.args = append(n.args, one)
		n.Start(i)
	}
	t.Cleanup(func() {
		for i := range n.runs {
			n.Kill(i)
		}
	})
	return n
}

// StartJetStream is StartNATS for three servers with JetStream, whose data outlives a
// restart.
func StartJetStream(t testing.TB, tools string) *NATS {
	t.Helper()
	return StartNATS(t, tools, 3, "-js", "-sd", filepath.Join(t.TempDir(), ServerNumber))
}

// ServerNumber is a placeholder in the arguments of StartNATS: Start replaces it by the
// number of the server, from 0.
const ServerNumber = "SERVER"

// URL returns the URL of server i.
func (n *NATS) URL(i int) string { return fmt.Sprintf("nats://127.0.0.1:%d", n.ports[i]) }

// Start starts server i, which must be down, and waits until it accepts connections.
func (n *NATS) Start(i int) {
	n.t.Helper()
	args := append([]string{}, n.args[i]...)
	for j := range args {
		args[j] = strings.ReplaceAll(args[j], ServerNumber, fmt.Sprint(i))
	}
	log := must.Get(os.OpenFile(filepath.Join(n.dir, fmt.Sprintf("%d.log", i)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(n.t)
	defer log.Close()
	c := exec.Command(args[0], args[1:]...)
	c.Stdout, c.Stderr = log, log
	must.Do(n.t, c.Start())
	r := &natsRun{c.Process, make(chan struct{})}
	go func() {
		defer close(r.ended)
		_ = c.Wait() // however it ends
	}()
	n.runs[i] = r
	Eventually(n.t, Patience, "the NATS server takes connections", func() bool {
		select {
		case <-r.ended:
			said, _ := os.ReadFile(log.Name())
			n.t.Fatalf("the NATS server has ended: %s", said)
		default:
		}
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", n.ports[i]), time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// Kill kills server i, if it runs, and waits for its end.
func (n *NATS) Kill(i int) {
	if r := n.runs[i]; r != nil {
		_ = r.process.Kill() // it may have ended
		<-r.ended
		n.runs[i] = nil
	}
}
