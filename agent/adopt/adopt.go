package adopt

import (
	"context"
	"fmt"

	"tether/platform/proc"
	"tether/platform/pty"
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
	return nil, nil
}

// Find returns one pane that can be adopted. The error is an *UnknownError, a
// *RefusedError or one of a server that does not answer.
func Find(ctx context.Context, o Options, t Target) (Pane, error) {
	return Pane{}, &UnknownError{t}
}

// ReaderArgs returns the reader's arguments, after the verb, see Main. typed says that
// what is typed at the terminal goes to the pane.
func ReaderArgs(p Pane, typed bool) []string {
	return nil
}

// ReaderEnv returns the reader's whole environment: what its multiplexer's program needs,
// and the nonce of its marks.
func ReaderEnv(getenv func(string) string, nonce string) []string {
	return nil
}

// Main is the reader's program. It returns the status for the process to exit with: that
// of the pane's program where it is known, otherwise 0 if the pane or its server has
// ended, and 1 if the pane cannot be read. Call it before anything else: it switches the
// process's terminal to raw mode.
func Main(args []string) int {
	return 1
}
