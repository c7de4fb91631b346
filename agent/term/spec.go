package term

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tether/agent/loans"
	"tether/agent/output"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/vocab"
)

// Spec describes a terminal to start.
type Spec struct {
	ID      ID       // "" mints one
	Command []string // argv as the person gave it; shown in lists
	// Argv, Env and Nonce are the actual values if shell integration changes them. Argv
	// nil means Command. Env is the whole environment.
	Argv []string
	Env  []string
	// Nonce is what a mark must carry to be trusted. With "" no marks are trusted.
	Nonce string
	Name  string // at most 256 bytes; "" means the suggested one, else the base name of the command
	Cwd   string // absolute directory
	Size  Size   // zero means 80x24
	Feed  bool   // the child's standard input is a pipe, see Handle.Feeder
	// Limits are those of the child where they differ from this process's, see
	// pty.Command.
	Limits  proc.Limits
	Private bool
	OnSlow  OnSlow
	// IdleTimeout, if not 0, is how long an agent's terminal may go without output and
	// input before it is killed. It does not apply after a promotion.
	IdleTimeout time.Duration
	// TimeLimit, if not 0, is how long an agent's terminal may run before it is killed.
	// It does not apply after a promotion.
	TimeLimit time.Duration
	// Attaches says that a terminal which answers questions will be attached at once.
	Attaches bool
	// Leased is stored for the door that starts the terminal, see Info.
	Leased bool
	LendTo []string // hosts
	// Audience lists who else may watch at each of these hosts, besides the owner of this
	// machine there; at most loans.MaxNames.
	Audience []string
	// Ports are open at each of these hosts, see vocab.LentPort; at most loans.MaxPorts.
	Ports []int
	// Door is stored for Info; at most 16 bytes.
	Door string
	// Unsigned is stored for Info.
	Unsigned bool
	Port     int // stored for Info
	// Adopted says that the command only reads a pane of another program, see
	// [AdoptedError]; nil for an ordinary terminal. Directory and size are the pane's.
	Adopted *vocab.Adopted
	// Reveals, if not nil, is the environment in place of Env whose secret values the
	// output may show: that of a pane is not the one of its reader.
	Reveals []string
	// Notice says in one line what is not as asked, for whoever starts the terminal; ""
	// if nothing.
	Notice string
	// suggested is the name if Name is empty; see Suggest.
	suggested NameParts
	// Ended, if not nil, is called once when the child has ended or could not be started,
	// to remove its files.
	Ended func()
}

const maxName = 256 // bytes of a terminal's name

// NameParts is a name that tether suggests: app-dev. A number makes it unique among
// terminals that run.
type NameParts struct {
	Where string // the directory or package, "" if it says nothing
	What  string // "" for no suggestion
}

// Suggest takes parts, if they are not empty, in place of a name.
func (s *Spec) Suggest(parts NameParts) {
	if parts.What != "" {
		s.Name, s.suggested = "", parts
	}
}

// take replaces the suggestion by names that no other terminal has, and notes them in
// taken.
func (n NameParts) take(taken map[string]bool) (full, short string) {
	unique := func(name string) string {
		free := name
		for i := 2; taken[free]; i++ {
			free = fmt.Sprintf("%s-%d", name, i)
		}
		taken[free] = true
		return free
	}
	if n.Where == "" {
		full = unique(n.What)
		return full, full
	}
	return unique(n.Where + "-" + n.What), unique(n.What)
}

func (s *Spec) check() error {
	s.ID = cmp.Or(s.ID, NewID())
	if len(s.Command) == 0 || s.Command[0] == "" {
		return &SpecError{"command", errors.New("no command was given")}
	}
	if s.Argv == nil {
		s.Argv = s.Command
	}
	switch s.Name {
	case ".", "..", "/": // a URL cannot contain these, so doors could not reach the terminal
		return &SpecError{"name", fmt.Errorf("%q is not a valid terminal name; choose another", s.Name)}
	}
	s.Name = cmp.Or(s.Name, s.suggested.What, strings.ToValidUTF8(filepath.Base(s.Command[0]), "\uFFFD"))
	if len(s.Name) > maxName || strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return &SpecError{"name", fmt.Errorf("%.40q must be at most %d bytes without control characters", s.Name, maxName)}
	}
	if s.Size == (Size{}) {
		s.Size = pty.DefaultSize
	}
	if err := checkSize(s.Size); err != nil {
		return err
	}
	if s.Private && len(s.LendTo) > 0 {
		return &SpecError{"private", ErrPrivate}
	}
	if len(s.Audience) > loans.MaxNames || len(s.Audience)*len(s.LendTo) > loans.MaxAllNames {
		return &SpecError{"audience", loans.ErrTooManyNames}
	}
	if len(s.Ports) > loans.MaxPorts {
		return &SpecError{"ports", loans.ErrTooManyPorts}
	}
	if !filepath.IsAbs(s.Cwd) {
		return &SpecError{"directory", fmt.Errorf("%q is not an absolute path", s.Cwd)}
	}
	return nil
}

// nonceOf returns the scanner's nonce: an unguessable one if no marks are to be trusted.
func (s *Spec) nonceOf() string {
	return cmp.Or(s.Nonce, string(NewID())+string(NewID()))
}

// AddNotice adds to Notice, unless text is "".
func (s *Spec) AddNotice(text string) {
	if s.Notice != "" && text != "" {
		text = s.Notice + "; " + text
	}
	s.Notice = cmp.Or(text, s.Notice)
}

func (s *Spec) ended() {
	if s.Ended != nil {
		s.Ended()
	}
}

func checkSize(s Size) error {
	if !output.ValidSize(s) {
		return &SpecError{"size", fmt.Errorf("%dx%d is out of range, each side must be 1 to %d", s.Cols, s.Rows, output.MaxSize)}
	}
	return nil
}
