package shells

import (
	"strings"
	"testing"

	"tether/agenttools"
	"tether/vocab"
)

// looked is a shell as it is seen.
type looked struct {
	agenttools.Terminal
	info     agenttools.Info
	commands []vocab.Command
}

func (l looked) Info() agenttools.Info     { return l.info }
func (l looked) Commands() []vocab.Command { return l.commands }

// A shell whose command runs is not vacant, though a command within that one, as in ssh,
// has ended.
func TestACommandWithinAnotherLeavesNoVacancy(t *testing.T) {
	l := looked{info: agenttools.Info{Running: "ssh box"}, commands: []vocab.Command{{Running: true}, {Within: 1}}}
	if err := vacant(l); err == nil || !strings.Contains(err.Error(), `"ssh box"`) {
		t.Errorf("while ssh runs: %v", err)
	}
	l.info.Running, l.commands[0].Running = "", false
	if err := vacant(l); err != nil {
		t.Errorf("after it: %v", err)
	}
}
