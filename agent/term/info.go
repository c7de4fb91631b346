package term

import (
	"slices"
	"time"

	"tether/agent/redact"
)

// Info is a snapshot of a terminal for people and programs. It holds no output. The slices are the caller's.
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
	// Starter is the agent that has started it, nobody if unknown: programs in the terminal may still act for that agent.
	Starter Actor
	Private bool // neither lent nor seen by local agents
	Leased  bool // its door ends it when the program that started it is gone
	LentTo  []string
	Loans   []Loan // of LentTo, in the same order
	Door    string // the door through which it was started, "" if unknown
	// Unsigned says that no person is known to have started it: its door saw no sign of a person.
	Unsigned bool
	Notice   string // see Spec; not known to the next daemon
	Pid      int
	Started  time.Time
	Exit     *Exit // nil while running
	// Short is Name without the directory's part, "" if the name was given.
	Short string
	Ready Ready // of a declared terminal with a condition

	CommandDetection bool // a mark that counts was seen, so Commands is meaningful
	Running          *Command
	Bytes            int64 // raw bytes the child has written
	Retained         int64 // how many of the newest bytes the log still has
	Attached         int   // people attached now
	Held             bool  // the child outlives this process
	Holds            bool  // the child waits for a slow reader, for the stall time at most
	Lost             int64 // raw bytes that nobody could record; Bytes includes them
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
	i.Ready.Why = rules.Redact(i.Ready.Why)
	command := slices.Clone(i.Command)
	for n := range command {
		command[n] = rules.Redact(command[n])
	}
	i.Command = command
	if i.Running != nil {
		running := *i.Running
		running.Line = rules.Redact(running.Line)
		i.Running = &running
	}
}

// Exit is how a terminal ended.
type Exit struct {
	Code   int    // as the system reports it; 128+n when signal n killed the leader
	Signal string // the signal's name, "" for an ordinary exit
	Reason ExitReason
	At     time.Time
}

// ExitReason says who ended a terminal.
type ExitReason string

// The reasons.
const (
	ReasonExited ExitReason = "exited"  // the child, by itself
	ReasonKilled ExitReason = "killed"  // Kill, a disposal or the end of the pool
	ReasonIdle   ExitReason = "timeout" // Spec.IdleTimeout passed without input or output, or Spec.TimeLimit passed
	ReasonLost   ExitReason = "lost"    // the holder was killed: how the child ended is unknown, Code is -1
)

// Command is one command line of a shell with integration.
type Command struct {
	N        int    // counts from 1 within the terminal
	Line     string // as typed; "" when not HasLine
	HasLine  bool
	Started  time.Time
	Duration time.Duration // 0 while it runs
	Exit     *int          // nil while it runs, or when the shell did not say
	Done     bool
	// Verified says that marks with the terminal's nonce made the command. Marks without the nonce may come from a shell with marks of its
	// own, or from any program that prints them: such a command raises nobody's rights.
	Verified bool
	// Within is the N of the verified command in which this one ran, for example in a shell inside ssh; 0 for none.
	Within int
	Start  int64 // raw offset of the first byte of its output
	End    int64 // raw offset after the last one; the current end while it runs
}
