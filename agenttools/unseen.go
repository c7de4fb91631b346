package agenttools

import (
	"cmp"
	"slices"

	"tether/internal/clip"
	"tether/screen"
)

// UnseenNotice is what a model is told of each program that listens in no terminal.
const UnseenNotice = "not started by tether; do not start another"

// unseenGuide says what to do with such a program.
const unseenGuide = UnseenNotice + ". Use it as it is; for its output, ask the user to adopt it (tether adopt) or to restart it with tether run"

// UnseenPort is a TCP port of a program of the user that is in no terminal. Cwd and what
// follows are empty if the principal is not told the directory.
type UnseenPort struct {
	Port    int    `json:"port"`
	Program string `json:"program,omitempty"` // its name, without arguments
	Cwd     string `json:"cwd,omitempty"`
	Branch  string `json:"branch,omitempty"` // of the checkout there
	Since   int64  `json:"since,omitempty"`  // Unix time in ms at which the program started
	Adopt   string `json:"adopt,omitempty"`  // the user's command that makes a terminal of it
}

// Unseen are the ports of programs in no terminal, those with a directory first.
type Unseen struct {
	Notice string       `json:"notice"`
	Ports  []UnseenPort `json:"ports"`
	More   int          `json:"more,omitempty"` // how many there are besides
}

// Bounds of Unseen. Most clients show the first 2,000 bytes of any answer.
const (
	maxUnseen     = 1500 // bytes as JSON
	maxUnseenText = 200  // bytes of a program, a directory or a branch
)

// firstEphemeral is the first port that Linux gives to programs that ask for none: these
// are rarely what an agent looks for.
const firstEphemeral = 32768

// unseen returns the ports of which the principal may know, nil if there are none.
func (s *Set) unseen() *Unseen {
	l, ok := s.opts.Terminals.(Locator)
	if !ok || !s.opts.Loopback {
		return nil
	}
	ports := l.Unseen()
	if len(ports) == 0 {
		return nil
	}
	rank := func(p UnseenPort) int {
		switch {
		case p.Cwd != "":
			return 0
		case p.Port < firstEphemeral:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(ports, func(a, b UnseenPort) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Port, b.Port))
	})
	u := &Unseen{Notice: unseenGuide, Ports: []UnseenPort{}}
	room := maxUnseen - sizeOf(u) - len(`,"more":65535`)
	for i, p := range ports {
		for _, text := range []*string{&p.Program, &p.Cwd, &p.Branch} {
			*text = clip.Marked(screen.Clean(*text), maxUnseenText)
		}
		if room -= sizeOf(p) + len(","); room < 0 && i > 0 {
			u.More = len(ports) - i
			break
		}
		u.Ports = append(u.Ports, p)
	}
	return u
}
