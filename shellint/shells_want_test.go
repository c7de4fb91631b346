package shellint_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/must"
	"tether/shellint"
)

// Expectations of the shell tests on a session.

// ran is a command as the tracker saw it.
type ran struct {
	Line string
	Exit int64 // unknown is -1
}

// commands are the closed commands in order.
func (s *session) commands() []ran {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []ran
	for _, e := range s.events {
		if e.Kind != shellint.CommandClosed {
			continue
		}
		c := ran{Line: e.Line, Exit: -1}
		if e.Exit.Known {
			c.Exit = e.Exit.Code
		}
		all = append(all, c)
	}
	return all
}

// closed is the number of commands that ended. The caller holds mu.
func (s *session) closed() int {
	n := 0
	for _, e := range s.events {
		if e.Kind == shellint.CommandClosed {
			n++
		}
	}
	return n
}

// wantCommands compares the commands seen so far.
func (s *session) wantCommands(want []ran) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.commands()); diff != "" {
		raw, _ := s.written()
		s.t.Errorf("commands: -want +got\n%s\n%q", diff, tail(raw))
	}
}

// output is the output of the first command with that line.
func (s *session) output(line string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := int64(-1)
	for _, e := range s.events {
		switch {
		case e.Kind == shellint.CommandOpened && e.Line == line && start < 0:
			start = e.Off
		case e.Kind == shellint.CommandClosed && start >= 0:
			return string(s.raw[start:e.Off])
		}
	}
	return "never ran"
}

func (s *session) wantOutput(line, want string) {
	s.t.Helper()
	if got := s.output(line); got != want {
		s.t.Errorf("output of %q is %q, want %q", line, got, want)
	}
}

// wantCwd compares the last directory that was reported.
func (s *session) wantCwd(want string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.marks) - 1; i >= 0; i-- {
		if m := s.marks[i]; m.Kind == shellint.KindCwd && m.Trusted {
			if m.Text != want {
				s.t.Errorf("directory is %q, want %q", m.Text, want)
			}
			return
		}
	}
	s.t.Errorf("no directory, want %q", want)
}

// typeKeys types text and waits until more output has want in it.
func (s *session) typeKeys(text, want string) {
	s.t.Helper()
	from := s.offset()
	s.send(text)
	s.waitText(from, want)
}

func (s *session) wantOutputHas(line, want string) {
	s.t.Helper()
	if got := s.output(line); !strings.Contains(got, want) {
		s.t.Errorf("output of %q is %q, without %q", line, got, want)
	}
}

// written is the output so far, and the same without marks.
func (s *session) written() (raw, clean string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.raw), string(s.clean)
}

// log is the text that commands wrote to $LOG.
func (s *session) log() []string {
	s.t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(s.home, "log")))(s.t)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
