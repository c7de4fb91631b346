package term

import (
	"slices"
	"time"

	"tether/agent/loans"
	"tether/agent/redact"
	"tether/internal/clip"
	"tether/vocab"
)

// Info is a snapshot of a terminal for people and programs. It holds no output. The
// slices are the caller's.
type Info struct {
	ID      ID
	Name    string   // given at Spawn, else of the runner and its script, else the command's base name
	Title   string   // the child's latest, else Name; at most maxTitle bytes
	Command []string // argv
	Cwd     string   // absolute; follows trusted cwd reports
	// StartCwd is where it was started.
	StartCwd string
	Size     Size
	Owner    Actor
	Visible  bool // shown to the person in user interfaces
	// Promoted says that an agent has started it and it has become the person's.
	Promoted bool
	// Starter is the agent that has started it, nobody if unknown: programs in the
	// terminal may still act for that agent.
	Starter Actor
	Private bool // neither lent nor seen by local agents
	Leased  bool // its door ends it when the program that started it is gone
	LentTo  []string
	Loans   []loans.Loan // of LentTo, in the same order
	Door    string       // the door through which it was started, "" if unknown
	// Unsigned says that no person is known to have started it: its door saw no sign of a
	// person.
	Unsigned bool
	Port     int    // the TCP port that it was given, 0 for none
	Notice   string // see Spec; not known to the next daemon
	Pid      int    // of an adopted pane, that of the pane's program
	// Adopted is the pane of another program that the terminal only reads; nil for a
	// terminal that tether has started. Do not change it.
	Adopted *vocab.Adopted
	Started time.Time
	Exit    *vocab.Exit // nil while running
	// Short is Name without the directory's part, "" if the name was given.
	Short string
	vocab.Readiness

	CommandDetection bool // a mark that counts was seen, so Commands is meaningful
	Running          *vocab.Command
	Bytes            int64     // raw bytes the child has written
	Retained         int64     // how many of the newest bytes the log still has
	Attached         int       // people attached now
	Typed            time.Time // when the person has typed last; zero: not since this process has it
	Interrupted      time.Time // when ^C was typed last, or a signal sent; zero: not since this process has it
	Outlives         bool      // the child outlives this process
	Holds            bool      // the child waits for a slow reader, for the stall time at most
	Lost             int64     // raw bytes that nobody could record; Bytes includes them
}

// LentToHost reports whether the terminal is announced at the host called name.
func (i Info) LentToHost(name string) bool { return slices.Contains(i.LentTo, name) }

// HideDirectory takes the directory's part out of Name and Title if rules mask the
// directory in which the terminal was started. A name that was given stays.
func (i *Info) HideDirectory(rules *redact.Rules) {
	if i.Short == "" || rules.Redact(i.StartCwd) == i.StartCwd {
		return
	}
	if i.Title == i.Name {
		i.Title = i.Short
	}
	i.Name = i.Short
}

// mask masks the texts in i for hosts.
func (i *Info) mask(rules *redact.Rules) {
	i.HideDirectory(rules)
	i.Name, i.Title, i.Cwd, i.StartCwd = rules.Redact(i.Name), rules.Redact(i.Title), rules.Redact(i.Cwd), rules.Redact(i.StartCwd)
	i.ReadyWhy = rules.Redact(i.ReadyWhy)
	if i.Adopted != nil {
		adopted := *i.Adopted
		adopted.From, adopted.Rule = rules.Redact(adopted.From), rules.Redact(adopted.Rule)
		i.Adopted = &adopted
	}
	command := slices.Clone(i.Command)
	for n := range command {
		command[n] = rules.Redact(command[n])
	}
	i.Command = command
	if i.Running != nil {
		running := *i.Running
		running.Show(rules.Redact)
		i.Running = &running
	}
}

const maxWhy = 200 // bytes

// SetReady sets the readiness of the terminal, and closes the channels that Input has
// returned. It does nothing after the exit.
func (h Handle) SetReady(state vocab.ReadyState, why string) {
	t := h.t
	t.mu.Lock()
	if t.ending.exit == nil {
		t.setReadyLocked(state, why)
	}
	t.mu.Unlock()
	t.pool.changed()
}

func (t *Terminal) setReadyLocked(state vocab.ReadyState, why string) {
	t.ready = vocab.Readiness{Ready: state, ReadySince: time.Now(), ReadyWhy: clip.Text(why, maxWhy)}
	t.attention.changed.Raise()
}

// endReadyLocked sets the readiness that follows from the exit.
func (t *Terminal) endReadyLocked() {
	if after := t.ready.Ended(); after != t.ready {
		t.ready = after
		t.attention.changed.Raise()
	}
}
