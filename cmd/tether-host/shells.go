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

	"tether/agent/term"
	"tether/ahp"
	"tether/host"
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
	pool  *term.Pool
	kills sync.WaitGroup // process.Kill
}

func newShells() *shells {
	return &shells{pool: term.NewPool(term.Options{LogBytes: shellLog, KeepExited: 1})}
}

// close ends all shells.
func (s *shells) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shellEnd)
	defer cancel()
	_ = s.pool.Close(ctx) // the process ends next
	s.kills.Wait()
}

// Start implements host.Runner.
func (s *shells) Start(_ context.Context, t host.ServerTerminal) (host.ServerProcess, error) {
	dir, err := directory(t.Cwd)
	if err != nil {
		return nil, err
	}
	access := s.pool.As(term.User)
	h, err := access.Spawn(term.Spec{
		Command: []string{shell.Login()}, Env: shellEnv(os.Environ()), Name: clip(t.Name, maxName), Cwd: dir,
		Size: term.Size{Cols: uint16(t.Cols), Rows: uint16(t.Rows)},
	})
	if err != nil {
		return nil, err
	}
	r, err := h.Reader(term.ReaderOptions{View: term.ViewText, Hold: true})
	if err != nil {
		return nil, errors.Join(err, h.Kill(context.Background()))
	}
	return &process{shells: s, handle: h, reader: r, buf: make([]byte, readBytes)}, nil
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

func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// process is one shell as the host sees it.
type process struct {
	shells *shells
	handle term.Handle
	reader *term.Reader
	buf    []byte // owned by the goroutine that calls Next
}

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
