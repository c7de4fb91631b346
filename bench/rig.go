package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/ahp/client"
	"tether/platform/dirs"
)

// rig is a daemon and a host: two processes that are paired, in one temporary home.
type rig struct {
	home   string
	dirs   dirs.Dirs           // below home
	env    []string            // of the processes
	socket string              // of the daemon
	door   *localclient.Client // on the socket
	host   client.Endpoint
	daemon *exec.Cmd  // nil in a rig with a host alone
	server *exec.Cmd  // the host
	said   complaints // the processes' standard error

	daemonReady, hostReady time.Duration // from start to readiness
}

// programs are the command lines of the daemon and of the host.
type programs struct {
	daemon, host []string
}

// built returns the programs that make build has put into the directory bin.
func built(bin string) programs {
	return programs{
		daemon: []string{filepath.Join(bin, "tether"), "daemon", "--allow-root", "--set", "lend.as_root=true"},
		host:   []string{filepath.Join(bin, "tether-host"), "--listen", "127.0.0.1:0", "--without-token"},
	}
}

const (
	startWithin = 2 * time.Minute // enough on a busy machine
	pollEvery   = time.Millisecond
)

// newRig starts the programs and pairs them. The caller must close the rig.
func newRig(ctx context.Context, p programs) (*rig, error) { return newRigWith(ctx, p, "") }

// newRigWith is newRig with a configuration file for the daemon.
func newRigWith(ctx context.Context, p programs, config string) (*rig, error) {
	return newRigBy(ctx, p, config, func(*client.Endpoint) error { return nil })
}

// newRigBy is newRigWith that lets by change the host's address before the daemon and
// observers use it.
func newRigBy(ctx context.Context, p programs, config string, by func(*client.Endpoint) error) (*rig, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	home, err := os.MkdirTemp(shortTemp(), "tb")
	if err != nil {
		return nil, err
	}
	r := &rig{home: home, env: append(os.Environ(), dirs.HomeVar+"="+home)}
	if err := r.writeConfig(config); err != nil {
		r.close()
		return nil, err
	}
	for _, start := range []func(context.Context, programs) error{r.startHost, func(context.Context, programs) error { return by(&r.host) }, r.startDaemon, r.pair} {
		if err := start(ctx, p); err != nil {
			r.close()
			return nil, r.said.explain(err)
		}
	}
	return r, nil
}

// shortTemp is a directory with a path short enough for a socket, which os.TempDir on
// macOS is not.
func shortTemp() string {
	if info, err := os.Stat("/tmp"); err == nil && info.IsDir() {
		return "/tmp"
	}
	return os.TempDir()
}

// startHost starts the host and waits for its line READY URL.
func (r *rig) startHost(ctx context.Context, p programs) error {
	cmd := r.command(p.host)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	r.server = cmd
	lines := make(chan string, 1) // the first line; never closed
	go func() {
		in := bufio.NewReader(out)
		line, _ := in.ReadString('\n') // "" is no URL
		lines <- line
		_, _ = io.Copy(io.Discard, in)
	}()
	select {
	case line := <-lines:
		r.hostReady = time.Since(began)
		url, ok := strings.CutPrefix(strings.TrimSpace(line), "READY ")
		if !ok {
			return fmt.Errorf("%s printed %.80q instead of READY and a URL", p.host[0], line)
		}
		r.host.URL = url
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is not ready: %w", p.host[0], ctx.Err())
	}
}

// startDaemon starts the daemon and waits until its local door answers.
func (r *rig) startDaemon(ctx context.Context, p programs) error {
	var err error
	r.dirs, err = dirs.For("linux", func(name string) string { // with TETHER_HOME, all systems have the same directories
		if name == dirs.HomeVar {
			return r.home
		}
		return ""
	})
	if err != nil {
		return err
	}
	r.socket = agent.SocketPath(r.dirs)
	r.door = localclient.New(r.socket)
	cmd := r.command(p.daemon)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	r.daemon = cmd
	_, err = poll(ctx, func() (localapi.Status, error) {
		s, err := r.door.Status(ctx)
		if errors.Is(err, localclient.ErrNotRunning) {
			err = errNotYet
		}
		return s, err
	})
	r.daemonReady = time.Since(began)
	return err
}

func (r *rig) command(argv []string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stderr = r.env, &r.said
	return cmd
}

// complaints keeps the newest text that processes print on standard error, for the
// message of a failure.
type complaints struct {
	mu   sync.Mutex
	text []byte
}

const maxComplaints = 2 << 10 // bytes

// Write implements io.Writer.
func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p...)
	c.text = c.text[max(0, len(c.text)-maxComplaints):]
	return len(p), nil
}

// explain adds the kept text to an error. It returns nil for nil.
func (c *complaints) explain(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil || len(c.text) == 0 {
		return err
	}
	return fmt.Errorf("%w; the programs printed: %s", err, c.text)
}

func (r *rig) pair(ctx context.Context, _ programs) error {
	if _, err := r.door.Pair(ctx, localapi.PairRequest{URL: r.host.URL}); err != nil {
		return fmt.Errorf("pair: %w", err)
	}
	_, err := poll(ctx, func() (struct{}, error) {
		s, err := r.door.Status(ctx)
		if err == nil && (len(s.Hosts) == 0 || s.Hosts[0].State != "online") {
			err = errNotYet
		}
		return struct{}{}, err
	})
	return err
}

// start runs argv in a lent terminal that waits for its readers, and returns its id and
// its URI at the host, where it exists when start returns.
func (r *rig) start(ctx context.Context, argv ...string) (id, uri string, err error) {
	t, err := r.door.Spawn(ctx, localapi.SpawnRequest{Command: argv, Env: r.env, Cwd: r.home, OnSlow: "hold"})
	if err != nil {
		return "", "", err
	}
	uri, err = poll(ctx, func() (string, error) {
		s, err := r.door.Status(ctx)
		if err != nil || len(s.Hosts) == 0 {
			return "", errors.Join(err, errNotYet)
		}
		for _, l := range s.Hosts[0].Lent {
			if l.ID == t.ID && l.Problem != "" {
				return "", errors.New(l.Problem)
			}
			if l.ID == t.ID && l.URI != "" {
				return l.URI, nil
			}
		}
		return "", errNotYet
	})
	return t.ID, uri, err
}

// kill ends a terminal.
func (r *rig) kill(ctx context.Context, id string) error {
	_, err := r.door.Kill(ctx, id)
	return err
}

// watch observes the terminal uri. It tries again until the host has the terminal or ctx
// ends.
func (r *rig) watch(ctx context.Context, uri string, show func(p []byte)) (*observer, error) {
	var last error
	o, err := poll(ctx, func() (*observer, error) {
		o, err := observe(ctx, r.host, uri, show)
		if err != nil {
			last, err = err, errNotYet
		}
		return o, err
	})
	if err != nil {
		return nil, errors.Join(err, last)
	}
	return o, nil
}

// close ends the processes and removes the home.
func (r *rig) close() {
	if r.daemon != nil {
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		if r.door.Shutdown(ctx) != nil {
			_ = r.daemon.Process.Kill()
		}
		_ = r.daemon.Wait()
		_, _ = agent.EndLeftRunning(ctx, r.dirs) // terminals of a daemon that was killed
		r.door.Close()
	}
	if r.server != nil {
		_ = r.server.Process.Signal(os.Interrupt)
		_ = r.server.Wait()
	}
	_ = os.RemoveAll(r.home)
}

// writeConfig writes the configuration file of a daemon that starts later; "" writes
// none.
func (r *rig) writeConfig(text string) error {
	if text == "" {
		return nil
	}
	dir := filepath.Join(r.home, "config")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errNotYet = errors.New("not yet")

// poll calls f, with pauses of pollEvery, until it returns another error than errNotYet,
// or nil.
func poll[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if !errors.Is(err, errNotYet) {
			return v, err
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return v, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// until waits until cond returns true.
func until(ctx context.Context, cond func() bool) error {
	_, err := poll(ctx, func() (struct{}, error) {
		if !cond() {
			return struct{}{}, errNotYet
		}
		return struct{}{}, nil
	})
	return err
}

// typeLine types an empty line at a terminal and waits for the next output there, its
// echo.
func (r *rig) typeLine(ctx context.Context, id string) error {
	a, err := r.door.Attach(ctx, id, localclient.AttachOptions{})
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Write(ctx, []byte{'\n'}); err != nil {
		return err
	}
	_, err = a.Next(ctx) // the echo: the child's pty has the line
	return err
}
