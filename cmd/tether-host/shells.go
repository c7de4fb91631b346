package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/integrate"
	"tether/agent/output"
	"tether/agent/term"
	"tether/ahp"
	"tether/host/shells"
	"tether/internal/clip"
	"tether/platform/proc"
	"tether/platform/shell"
)

const (
	shellLog   = 256 << 10              // bytes of output kept per shell; the host keeps its own record
	shellEnd   = 10 * time.Second       // for all shells to end when the host does
	inputPause = 100 * time.Millisecond // how long input may wait for a shell that does not read
	readBytes  = 32 << 10               // of output per envelope
	maxName    = 256                    // bytes; term.Spec's bound
)

// runner runs the server-executed terminals: the user's own shell on a pty of this
// machine.
type runner struct {
	pool    *term.Pool
	scripts string         // directory of the files that shells read at their start; "" if it could not be made
	kills   sync.WaitGroup // process.Kill
}

func newRunner() *runner {
	scripts, err := os.MkdirTemp("", "tether-host-")
	if err != nil {
		scripts = "" // then shells do not report their commands
	}
	return &runner{pool: term.NewPool(term.Options{LogBytes: shellLog, KeepExited: 1}), scripts: scripts}
}

// close ends all shells.
func (r *runner) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shellEnd)
	defer cancel()
	_ = r.pool.Close(ctx) // on error, the end of the process ends them
	r.kills.Wait()
	if r.scripts != "" {
		_ = os.RemoveAll(r.scripts) // if it fails, it stays in the system's temporary directory
	}
}

// Start implements shells.Runner.
func (r *runner) Start(_ context.Context, t shells.Request) (shells.Process, error) {
	dir, err := directory(t.Cwd)
	if err != nil {
		return nil, err
	}
	spec := term.Spec{
		Command: []string{shell.Login()}, Env: shellEnv(os.Environ()), Name: clip.Text(t.Name, maxName), Cwd: dir,
		Size: term.Size{Cols: uint16(t.Cols), Rows: uint16(t.Rows)},
	}
	if r.scripts != "" {
		if err := integrate.Shell(&spec, r.scripts, false); err != nil && !errors.Is(err, integrate.ErrScripts) {
			return nil, err
		}
	}
	h, err := r.pool.As(term.User).Spawn(spec)
	if err != nil {
		return nil, err
	}
	reader, err := h.Reader(output.ReaderOptions{View: output.ViewText, Hold: true})
	if err != nil {
		return nil, errors.Join(err, h.Kill(context.Background()))
	}
	return &process{runner: r, handle: h, reader: reader, buf: make([]byte, readBytes), reports: spec.Nonce != ""}, nil
}

// directory returns the path of the directory that a client names, as a file: URI or as a
// path.
func directory(cwd string) (string, error) {
	if cwd == "" {
		return homeDir(), nil
	}
	path := cwd
	if strings.HasPrefix(cwd, "file:") {
		u, err := url.Parse(cwd)
		if err != nil || u.Host != "" && u.Host != "localhost" {
			return "", errors.New("the directory is not on this machine")
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

// shellEnv returns the environment of a shell: that of this process, without variables
// that concern only this process.
func shellEnv(env []string) []string {
	env = slices.DeleteFunc(env, func(s string) bool {
		return strings.HasPrefix(s, "TETHER_") || strings.HasPrefix(s, "TERM=")
	})
	return append(env, "TERM=xterm-256color")
}

// process is one shell as the host sees it.
type process struct {
	runner *runner
	handle term.Handle
	reader *output.Reader
	buf    []byte // owned by the goroutine that calls Next

	reports bool // its shell was started so that it reports its commands
}

// Reports implements shells.Reporter.
func (p *process) Reports() bool { return p.reports }

// Command implements shells.Inspector.
func (p *process) Command() []string { return p.handle.Info().Command }

// Foreground implements shells.Inspector. If the system does not report the foreground,
// it is any process that the shell has started.
func (p *process) Foreground() string {
	i := p.handle.Info()
	if i.Exit != nil {
		return ""
	}
	if i.Running != nil {
		return cmp.Or(i.Running.Text(), "a command")
	}
	front, ok := proc.Front(i.Pid)
	if !ok {
		all, err := proc.List()
		if below := proc.Descendants(all, i.Pid); err != nil || len(below) > 0 {
			return "a program started by the shell"
		}
		return ""
	}
	line := strings.Join(front.Argv, " ")
	switch {
	case front.Pid != i.Pid:
		return cmp.Or(line, fmt.Sprint("process ", front.Pid))
	case len(front.Argv) > 0 && programName(front.Argv[0]) != programName(i.Command[0]): // the shell has replaced itself
		return line
	}
	return ""
}

// programName returns the name of a program without its directory, and without the hyphen
// before a login shell's name.
func programName(argv0 string) string { return strings.TrimPrefix(filepath.Base(argv0), "-") }

// Next implements shells.Process.
func (p *process) Next(ctx context.Context) (shells.Event, error) {
	for {
		ev, err := p.reader.Next(ctx, p.buf)
		var lagged *output.LaggedError
		switch {
		case errors.As(err, &lagged):
			return shells.Event{Text: fmt.Appendf(nil, "\r\n[tether-host: %d bytes of output are missing here]\r\n", lagged.Lost)}, nil
		case err != nil:
			return shells.Event{}, err
		case ev.Mark == nil:
			return shells.Event{Text: ev.Data}, nil
		}
		if a := action(ev.Mark); a != nil {
			return shells.Event{Action: a}, nil
		}
	}
}

// action returns the action for subscribers about a mark; nil if the host itself reports
// it.
func action(m *output.Mark) ahp.Action {
	switch m.Kind {
	case output.MarkDetection:
		return ahp.TerminalCommandDetectionAvailable{}
	case output.MarkCommandExecuted:
		return ahp.TerminalCommandExecuted{CommandID: commandID(m), CommandLine: m.Command.Text(), Timestamp: m.Command.Started.UnixMilli(),
			Meta: ahp.NewCommandMeta(m.Command.Verified)}
	case output.MarkCommandFinished:
		return ahp.TerminalCommandFinished{CommandID: commandID(m), ExitCode: code(m.Command.Exit), DurationMs: m.Command.DurationMs}
	case output.MarkTitle:
		return ahp.TerminalTitleChanged{Title: cmp.Or(m.Text, "terminal")}
	case output.MarkCwd:
		if cwd := ahp.FileURI(m.Text); cwd != "" {
			return ahp.TerminalCwdChanged{Cwd: cwd}
		}
	case output.MarkExited:
		return ahp.TerminalExited{ExitCode: code(&m.Exit.Code)}
	}
	return nil // resized: the host has requested and reported that
}

func commandID(m *output.Mark) string { return fmt.Sprint("cmd-", m.Command.N) }

func code(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}

// Input implements shells.Process.
func (p *process) Input(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), inputPause)
	defer cancel()
	err := p.handle.Write(ctx, []byte(text))
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the terminal does not read its input")
	}
	return err
}

// Resize implements shells.Process.
func (p *process) Resize(cols, rows int) error {
	return p.handle.Resize(term.Size{Cols: uint16(cols), Rows: uint16(rows)})
}

// Kill implements shells.Process.
func (p *process) Kill() {
	p.reader.Close()
	p.runner.kills.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shellEnd)
		defer cancel()
		_ = p.handle.Kill(ctx) // nobody waits for the result
	})
}

// shellsCommand lists the shells of a running host, and ends one.
func shellsCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	var u hostURL
	var asJSON bool
	c := &cobra.Command{
		Use: "shells", Short: "list the shells of a running host, including those without a client",
		Long: `Lists the shells that clients have started at a host, with the owner, the time since which the shell has no client, and its
foreground program. A shell has a client while its owner or the holder of its claim is connected, or an observer watches it.
The token must have the role admin; the host's own token has it.

A shell keeps running when its client disconnects, so that the client can reconnect. tether-host --shell-grace DURATION ends shells
that stay without a client for this time.`,
		Args: exactly(0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			var got struct{ Shells []shells.Shell }
			if err := u.list(c.Context(), "shells", stdin, &got); err != nil {
				return err
			}
			if asJSON {
				return printJSON(stdout, map[string]any{"schema_version": 1, "shells": append([]shells.Shell{}, got.Shells...)})
			}
			return printShells(stdout, got.Shells)
		},
	}
	u.flagsIn(c.PersistentFlags())
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.AddCommand(&cobra.Command{
		Use: "end ID", Short: "end a shell and its processes", Args: exactly(1, "the id of a shell; tether-host shells lists them"),
		RunE: func(c *cobra.Command, args []string) error {
			found, err := u.remove(c.Context(), "shells/"+url.PathEscape(args[0]), stdin)
			if err != nil {
				return err
			}
			if !found {
				return fmt.Errorf("the host has no shell %.60q; tether-host shells lists them", args[0])
			}
			fmt.Fprintln(stdout, "ended", args[0])
			return nil
		},
	})
	return c
}

func printShells(stdout io.Writer, all []shells.Shell) error {
	if len(all) == 0 {
		fmt.Fprintln(stdout, "the host runs no shells")
		return nil
	}
	w := newTable(stdout, "ID\tCOMMAND\tOWNER\tNO CLIENT SINCE\tFOREGROUND")
	for _, s := range all {
		alone, front := "-", cmp.Or(s.Foreground, "-")
		if s.AloneSince != nil {
			alone = s.AloneSince.Local().Format("2006-01-02 15:04")
		}
		if s.Exited {
			front = "exited"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", oneLine(s.ID), clip.Text(oneLine(s.Command), 40), oneLine(s.Owner), alone, clip.Text(oneLine(front), 60))
	}
	return w.Flush()
}
