package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tether/internal/demo"
	"tether/internal/retry"
	"tether/platform/dirs"
	"tether/platform/proc"
	"tether/platform/tty"
)

func demoCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "demo", Short: "demonstrate tether on this machine with a temporary host, daemon and dev server", Args: noArgs,
		Long: `demonstrate tether on this machine: a host, a daemon paired with it, a small dev
server in a shared terminal, and the host's page in a browser. The demo does not touch
your own daemon, hosts and files, and removes everything at the end.

In an interactive terminal, each step waits for a key. Otherwise the demo runs all
steps, kills the daemon, lets another resume the server, and exits with 0 only if an
observer at the host saw each line once.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.demo(c.Context()) },
	}
	c.AddCommand(&cobra.Command{Use: "serve DIR", Hidden: true, Short: "the demo's dev server", Args: someArgs(1, 1, "a directory"),
		RunE: func(c *cobra.Command, args []string) error { return demo.Serve(c.Context(), args[0], a.stdout) }})
	return c
}

// stage is the demo's temporary environment: a directory with the home of a daemon, a
// host, and the page of the dev server.
type stage struct {
	app     *app
	dir     string
	self    string // this program
	program string // tether-host
	host    *exec.Cmd
	url     string // of the host
}

const (
	demoHost   = "demo-host"
	demoServer = "dev-server"
	// demoWithin bounds a step that normally takes a moment.
	demoWithin = time.Minute
	demoPage   = "<!doctype html><meta charset=utf-8><title>tether demo</title><h1>%s</h1><p>Served from a terminal shared with a host.\n"
)

func (a *app) demo(ctx context.Context) error {
	s := &stage{app: a}
	err := s.open()
	if err == nil {
		if err = s.begin(ctx); err == nil {
			if tty.Is(a.stdin) && tty.Is(a.stdoutFile) {
				err = s.play(ctx)
			} else {
				err = s.prove(ctx)
			}
		}
	}
	return errors.Join(err, s.close(context.WithoutCancel(ctx)))
}

// open finds the programs and makes the directory. This process and its children use only
// that directory for tether's files.
func (s *stage) open() error {
	var err error
	if s.self, err = os.Executable(); err != nil {
		return err
	}
	if s.program, err = hostProgram(s.self); err != nil {
		return &hinted{errors.New("the demo needs tether-host, which is neither next to tether nor in PATH"), "packages and make build contain both"}
	}
	if filepath.IsAbs("/tmp") { // first, as it is short: the path of a socket is limited
		s.dir, _ = os.MkdirTemp("/tmp", "tether-demo.") // else in TMPDIR
	}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "tether-demo."); err != nil {
			return err
		}
	}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "TETHER_") && name != proc.TagVar && name != proc.AgentVar || name == "NO_COLOR" {
			os.Unsetenv(name)
		}
	}
	for name, value := range map[string]string{dirs.HomeVar: s.home(), allowRootVar: "1", "TETHER_LEND_AS_ROOT": "true",
		"PATH": filepath.Dir(s.self) + string(filepath.ListSeparator) + os.Getenv("PATH")} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(s.dir, demo.Page), fmt.Appendf(nil, demoPage, "Hello"), 0o600)
}

// begin starts the host and the daemon, and the dev server in a terminal that is lent.
func (s *stage) begin(ctx context.Context) error {
	s.say("an agent host on this machine")
	if err := s.startHost(ctx); err != nil {
		return err
	}
	fmt.Fprintln(s.app.stdout, s.url)
	s.say("a daemon, paired with it")
	if err := s.tether(ctx, "pair", "--name", demoHost, "--token-file", s.token(), s.url); err != nil {
		return err
	}
	s.say("a dev server in a terminal shared with the host")
	return s.tether(ctx, "run", "--detach", "--name", demoServer, "--", s.self, "demo", "serve", s.dir)
}

// close ends all programs of the demo, and removes the directory.
func (s *stage) close(ctx context.Context) error {
	if s.dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, demoWithin)
	defer cancel()
	stop := exec.CommandContext(ctx, s.self, "stop") // with all its terminals
	_ = stop.Run()                                   // if there is a daemon
	if s.host != nil {
		if s.host.Process.Signal(os.Interrupt) != nil {
			_ = s.host.Process.Kill() // where there are no signals
		}
		_ = s.host.Wait() // it was interrupted
	}
	var err error
	for range 100 { // on Windows programs that end hold files for a while
		if err = os.RemoveAll(s.dir); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

func (s *stage) token() string { return filepath.Join(s.dir, "token") }

// startHost starts a host on a free port and waits until it is ready.
func (s *stage) startHost(ctx context.Context) error {
	var out, errs buffer
	c := exec.Command(s.program, "--listen", "127.0.0.1:0", "--token-file", s.token())
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		return fmt.Errorf("start the host: %w", err)
	}
	s.host = c
	err := s.until(ctx, "the host's READY line", func() bool {
		_, rest, ok := strings.Cut(out.String(), "READY ")
		url, _, whole := strings.Cut(rest, "\n")
		s.url, _, _ = strings.Cut(strings.TrimSpace(url), " ")
		return ok && whole
	})
	if err != nil {
		return fmt.Errorf("%w\n%s%s", err, out.String(), errs.String())
	}
	return nil
}

func (s *stage) say(text string) { fmt.Fprintf(s.app.stdout, "\n== %s\n", text) }

// tether runs a command of this program as the person would, and shows it.
func (s *stage) tether(ctx context.Context, args ...string) error {
	shown := args
	if i := len(args); i > 3 && args[i-3] == "demo" { // without the paths
		shown = append(append([]string{}, args[:i-4]...), "tether", "demo", "serve", ".")
	}
	if err := s.app.runShown(ctx, s.self, shown, args); err != nil {
		return fmt.Errorf("tether %s: %w", args[0], err)
	}
	return nil
}

// link returns an address of the host's page that logs one browser in.
func (s *stage) link(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, s.program, "link", "--url", s.url, "--token-file", s.token()).Output()
	if err != nil {
		return "", fmt.Errorf("tether-host link: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// change writes another page.
func (s *stage) change(heading string) error {
	return os.WriteFile(filepath.Join(s.dir, demo.Page), fmt.Appendf(nil, demoPage, heading), 0o600)
}

// until polls until so returns true, for at most demoWithin.
func (s *stage) until(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, demoWithin)
	defer cancel()
	for !so() {
		if !retry.Wait(ctx, 20*time.Millisecond) {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("did not see %s within %v", what, demoWithin)
			}
			return ctx.Err()
		}
	}
	return nil
}

// get requests a page.
func get(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s", r.URL.Host, answer.Status)
	}
	return string(text), err
}

// buffer is a program's output so far. Its methods may be called concurrently.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
