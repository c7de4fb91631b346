package adopt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tether/platform/proc"
	"tether/platform/pty"
	"tether/platform/tty"
)

// NonceVar is the reader's variable with the terminal's nonce, which its marks carry.
const NonceVar = "TETHER_ADOPT_NONCE"

// Options say where to look. All fields are optional.
type Options struct {
	// Getenv looks variables up that say where programs keep their sockets, such as
	// TMUX_TMPDIR, and PATH. nil means os.Getenv.
	Getenv func(string) string
}

// Pane is a pane that runs in another program. Its texts are printable and clipped.
type Pane struct {
	Target  Target
	Title   string
	Command string // argv of the program in the foreground, as far as it is known
	Dir     string // absolute, or "" if unknown
	Pid     int    // of the pane's first process; 0 if unknown
	// Server is the process of the multiplexer. With Pid and the pane's number it finds
	// the same pane again and never another one of the same number.
	Server proc.ID
	Socket string // where the server listens
	Size   pty.Size
	Exact  bool   // every byte is read; otherwise repeated pictures
	Why    string // why it cannot be adopted, and what to do; "" if it can
}

// UnknownError says that there is no such pane.
type UnknownError struct{ Target Target }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no pane %s: tether adopt lists those that there are", e.Target)
}

// RefusedError says that a pane cannot be adopted.
type RefusedError struct {
	Target Target
	Why    string // a sentence that says what to do
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s cannot be adopted: %s", e.Target, e.Why)
}

// List returns the panes of all servers of this user that can be found, in the order of
// their targets. It blocks for some milliseconds, and for a few seconds at most if a
// server does not answer: the errors name such servers. On systems without such programs
// it returns nothing.
func List(ctx context.Context, o Options) ([]Pane, []error) {
	panes, faults := listTmux(ctx, o)
	pictures, others := listTellers(ctx, o)
	return append(panes, pictures...), append(faults, others...)
}

// Find returns one pane that can be adopted. The error is an *UnknownError, a
// *RefusedError or one of a server that does not answer.
func Find(ctx context.Context, o Options, t Target) (Pane, error) {
	switch t.Program {
	case "tmux":
		return findTmux(ctx, o, t)
	case "kitty", "herdr", "wezterm", "zellij":
		return findTeller(ctx, o, t)
	}
	return Pane{}, &RefusedError{t, "tether adopts panes of tmux, zellij, kitty, WezTerm and herdr"}
}

func (o Options) getenv(name string) string {
	if o.Getenv == nil {
		return os.Getenv(name)
	}
	return o.Getenv(name)
}

// lookPath finds a program in PATH, of which it takes only absolute directories.
func (o Options) lookPath(name string) (string, error) {
	for _, dir := range filepath.SplitList(o.getenv("PATH")) {
		if filepath.IsAbs(dir) {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", exec.ErrNotFound
}

// ReaderArgs returns the reader's arguments, after the verb, see Main. typed says that
// what is typed at the terminal goes to the pane.
func ReaderArgs(p Pane, typed bool) []string {
	program := p.Target.Program
	if !p.Exact {
		program = pictured + program
	}
	args := []string{program, p.Socket, p.Target.Pane, strconv.Itoa(p.Pid), strconv.Itoa(p.Server.Pid), strconv.FormatUint(p.Server.Start, 10)}
	if typed {
		args = append(args, typeArg)
	}
	return args
}

// pictured precedes the program's name in the arguments of a reader of pictures.
const pictured = "picture-of-"

const typeArg = "type"

// Again, added to the reader's arguments, says that an earlier reader of the pane has
// ended: what was printed since is missing.
const Again = "again"

// readerVars are the variables that a reader needs.
var readerVars = []string{"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMUX_TMPDIR", "XDG_RUNTIME_DIR", "ZELLIJ_SOCKET_DIR"}

// ReaderEnv returns the reader's whole environment: what its multiplexer's program needs,
// and the nonce of its marks.
func ReaderEnv(getenv func(string) string, nonce string) []string {
	env := []string{"TERM=xterm-256color", NonceVar + "=" + nonce}
	for _, name := range readerVars {
		if value := getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Main is the reader's program. Its first argument is a directory of this user's for
// sockets, the others are those of ReaderArgs. It returns the status for the process to
// exit with: that of the pane's program where it is known, otherwise 0 if the pane or its
// server has ended, and 1 if the pane cannot be read. Call it before anything else: it
// switches the process's terminal to raw mode.
//
// A pane of tmux is read by another process, which this one starts if there is none: the
// hub of the server. It ends a second after the last reader.
func Main(args []string) int {
	if len(args) == 4 && args[1] == hubArg {
		return hubMain(args)
	}
	var r *reader
	err := errArgs
	if len(args) > 0 && filepath.IsAbs(args[0]) {
		r, err = parseArgs(args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tether:", err)
		return 1
	}
	r.nonce, r.out = os.Getenv(NonceVar), os.Stdout
	os.Unsetenv(NonceVar) // not for other programs
	if tty.Is(os.Stdout) {
		restore, err := tty.Raw(os.Stdout)
		if err != nil {
			fmt.Fprintln(os.Stderr, "tether: switch the terminal to raw mode:", err)
			return 1
		}
		defer restore()
	}
	if r.pictured.Target.Program != "" {
		return r.pictures()
	}
	return relay(args, r)
}

func parseArgs(args []string) (*reader, error) {
	if len(args) < 6 || slices.ContainsFunc(args[6:], func(arg string) bool { return arg != typeArg && arg != Again }) {
		return nil, errArgs
	}
	r := &reader{socket: args[1], pane: args[2], typed: slices.Contains(args[6:], typeArg), again: slices.Contains(args[6:], Again)}
	var err, err2, err3 error
	r.pid, err = strconv.Atoi(args[3])
	r.server.Pid, err2 = strconv.Atoi(args[4])
	r.server.Start, err3 = strconv.ParseUint(args[5], 10, 64)
	if program, ok := strings.CutPrefix(args[0], pictured); ok {
		r.pictured = Pane{Target: Target{Program: program, Pane: r.pane}, Socket: r.socket, Pid: r.pid, Server: r.server}
		if _, ok := tellerOf(r.pictured); !ok || r.typed {
			return nil, errArgs
		}
	} else if args[0] != "tmux" || !IsTmuxPane(r.pane) {
		return nil, errArgs
	}
	return r, errors.Join(err, err2, err3)
}

var errArgs = errors.New("a terminal starts this program by itself, for a pane that is adopted: use tether adopt")
