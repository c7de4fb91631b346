package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/agent/integrate"
	"tether/agent/term"
	"tether/ahp"
	"tether/host"
	"tether/internal/clip"
	"tether/platform/shell"
)

const (
	shellLog   = 256 << 10              // bytes of output kept per shell; the host keeps its own record
	shellEnd   = 10 * time.Second       // for all shells to end when the host does
	inputPause = 100 * time.Millisecond // how long input may wait for a shell that does not read
	readBytes  = 32 << 10               // of output per envelope
	maxName    = 256                    // bytes; what term.Spec takes
)

// shells runs the server-executed terminals: the user's own shell on a pty of this machine's.
type shells struct {
	pool    *term.Pool
	scripts string         // directory of what shells read at their start; "" if it could not be made
	kills   sync.WaitGroup // process.Kill
}

func newShells() *shells {
	scripts, err := os.MkdirTemp("", "tether-host-")
	if err != nil {
		scripts = "" // shells then do not report their commands
	}
	return &shells{pool: term.NewPool(term.Options{LogBytes: shellLog, KeepExited: 1}), scripts: scripts}
}

// close ends all shells.
func (s *shells) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shellEnd)
	defer cancel()
	_ = s.pool.Close(ctx) // the process ends next
	s.kills.Wait()
	if s.scripts != "" {
		_ = os.RemoveAll(s.scripts) // it is in the system's directory for what may be left over
	}
}

// Start implements host.Runner.
func (s *shells) Start(_ context.Context, t host.ServerTerminal) (host.ServerProcess, error) {
	dir, err := directory(t.Cwd)
	if err != nil {
		return nil, err
	}
	spec := term.Spec{
		Command: []string{shell.Login()}, Env: shellEnv(os.Environ()), Name: clip.Text(t.Name, maxName), Cwd: dir,
		Size: term.Size{Cols: uint16(t.Cols), Rows: uint16(t.Rows)},
	}
	if s.scripts != "" {
		if err := integrate.Shell(&spec, s.scripts, false); err != nil && !errors.Is(err, integrate.ErrScripts) {
			return nil, err
		}
	}
	h, err := s.pool.As(term.User).Spawn(spec)
	if err != nil {
		return nil, err
	}
	r, err := h.Reader(term.ReaderOptions{View: term.ViewText, Hold: true})
	if err != nil {
		return nil, errors.Join(err, h.Kill(context.Background()))
	}
	return &process{shells: s, handle: h, reader: r, buf: make([]byte, readBytes), reports: spec.Nonce != ""}, nil
}

// directory is the path that a client names, as a file: URI or plainly.
func directory(cwd string) (string, error) {
	if cwd == "" {
		return homeDir(), nil
	}
	path := cwd
	if strings.HasPrefix(cwd, "file:") {
		u, err := url.Parse(cwd)
		if err != nil || u.Host != "" && u.Host != "localhost" {
			return "", errors.New("the directory is not one of this machine's")
		}
		path = filepath.FromSlash(u.Path)
		if rest := strings.TrimPrefix(path, `\`); filepath.VolumeName(rest) != "" {
			path = rest // /C:/x of a Windows URI
		}
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() || !filepath.IsAbs(path) {
		return "", errors.New("the directory does not exist")
	}
	return path, nil
}

// shellEnv is the environment of a shell: this process's, without what concerns only it.
func shellEnv(env []string) []string {
	env = slices.DeleteFunc(env, func(s string) bool {
		return strings.HasPrefix(s, "TETHER_") || strings.HasPrefix(s, "TERM=")
	})
	return append(env, "TERM=xterm-256color")
}

// process is one shell as the host sees it.
type process struct {
	shells *shells
	handle term.Handle
	reader *term.Reader
	buf    []byte // owned by the goroutine that calls Next

	reports bool // its shell was started so that it reports its commands
}

// Reports implements host.Reporter.
func (p *process) Reports() bool { return p.reports }

// Next implements host.ServerProcess.
func (p *process) Next(ctx context.Context) (host.ServerEvent, error) {
	for {
		ev, err := p.reader.Next(ctx, p.buf)
		var lagged *term.LaggedError
		switch {
		case errors.As(err, &lagged):
			return host.ServerEvent{Text: fmt.Appendf(nil, "\r\n[tether-host: %d bytes of output are missing here]\r\n", lagged.Lost)}, nil
		case err != nil:
			return host.ServerEvent{}, err
		case ev.Mark == nil:
			return host.ServerEvent{Text: ev.Data}, nil
		}
		if a := action(ev.Mark); a != nil {
			return host.ServerEvent{Action: a}, nil
		}
	}
}

// action is what subscribers are told of a mark; nil for one that the host tells of by itself.
func action(m *term.Mark) ahp.Action {
	switch m.Kind {
	case term.MarkDetection:
		return ahp.TerminalCommandDetectionAvailable{}
	case term.MarkCommandExecuted:
		return ahp.TerminalCommandExecuted{CommandID: commandID(m), CommandLine: m.Command.Line, Timestamp: m.Command.Started.UnixMilli()}
	case term.MarkCommandFinished:
		ms := float64(m.Command.Duration.Microseconds()) / 1000
		return ahp.TerminalCommandFinished{CommandID: commandID(m), ExitCode: code(m.Command.Exit), DurationMs: &ms}
	case term.MarkTitle:
		return ahp.TerminalTitleChanged{Title: cmp.Or(m.Text, "terminal")}
	case term.MarkCwd:
		return ahp.TerminalCwdChanged{Cwd: m.Text}
	case term.MarkExited:
		return ahp.TerminalExited{ExitCode: code(&m.Exit.Code)}
	}
	return nil // resized: the host did it
}

func commandID(m *term.Mark) string { return fmt.Sprint("cmd-", m.Command.N) }

func code(n *int) *int64 {
	if n == nil {
		return nil
	}
	c := int64(*n)
	return &c
}

// Input implements host.ServerProcess.
func (p *process) Input(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), inputPause)
	defer cancel()
	err := p.handle.Write(ctx, []byte(text))
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the terminal does not read its input")
	}
	return err
}

// Resize implements host.ServerProcess.
func (p *process) Resize(cols, rows int) error {
	return p.handle.Resize(term.Size{Cols: uint16(cols), Rows: uint16(rows)})
}

// Kill implements host.ServerProcess.
func (p *process) Kill() {
	p.reader.Close()
	p.shells.kills.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shellEnd)
		defer cancel()
		_ = p.handle.Kill(ctx) // who asked has gone on
	})
}
