package agenttools

import (
	"context"
	"encoding/json"
	"time"

	"tether/internal/jsonspan"
	"tether/screen"
	"tether/vocab"
)

// Metadata describes a terminal in the words of the tools. The first five fields are
// always present; the others are absent if they do not apply.
type Metadata struct {
	ID        string           `json:"id"`
	Cwd       string           `json:"cwd"`
	Owner     Owner            `json:"owner"`
	Visible   bool             `json:"visible"`
	CreatedAt int64            `json:"createdAt"`         // Unix time in ms
	Status    string           `json:"status,omitempty"`  // running or exited; only in lists
	Machine   string           `json:"machine,omitempty"` // present if there are several machines; Name then begins with it
	Name      string           `json:"name,omitempty"`
	Running   string           `json:"running,omitempty"` // command line that a shell runs now
	Command   []string         `json:"command,omitempty"`
	Checkout  *vocab.Checkout  `json:"checkout,omitempty"`  // the git work tree that Cwd is in; only in lists
	Awaits    vocab.InputState `json:"awaits,omitempty"`    // awaiting_input or awaiting_secret: the program waits for typed input
	Ready     vocab.ReadyState `json:"ready,omitempty"`     // starting, ready, failed or stopped; absent if the user has not said when the terminal is ready
	AwaySince int64            `json:"awaySince,omitempty"` // Unix time in ms since when its machine is not connected and no output comes
	AwayWhy   string           `json:"awayWhy,omitempty"`   // why no output comes, if the machine itself may be connected
	KeptUntil int64            `json:"keptUntil,omitempty"` // Unix time in ms at which the host forgets the terminal, if its machine is not back by then; only the host has it now
	Dropped   string           `json:"dropped,omitempty"`   // why the host does not keep its output any more
	Port      int              `json:"port,omitempty"`      // TCP port that it was given at its start
	LentPorts []LentPort       `json:"lentPorts,omitempty"` // ports that fetch_page may ask
	Adopted   string           `json:"adopted,omitempty"`   // the pane of another program that the terminal only reads, such as tmux:%3; then it was not started here
	Picture   string           `json:"picture,omitempty"`   // "repeated picture" if not every byte of the pane is read: what was missed between two pictures is unknown
	Notice    string           `json:"notice,omitempty"`    // something that is not as asked
	Exited    bool             `json:"exited,omitempty"`
	*ExitFields
}

// ExitFields say how a terminal ended.
type ExitFields struct {
	ExitCode int              `json:"exitCode"`
	Signal   string           `json:"signal,omitempty"`
	Reason   vocab.ExitReason `json:"reason,omitempty"` // exited, killed or timeout
	ExitedAt int64            `json:"exitedAt"`
}

// details are additional fields for programs.
type details struct {
	Metadata
	Name   string           `json:"name"`
	Title  string           `json:"title"`
	Cols   int              `json:"cols"`
	Rows   int              `json:"rows"`
	Pid    int              `json:"pid,omitempty"`
	Cursor int64            `json:"cursor"`               // offset of the end of the output
	Input  vocab.InputState `json:"input,omitempty"`      // absent after the exit, and if the state of input is not examined here
	Since  int64            `json:"inputSince,omitempty"` // Unix time in ms since when Input is so
	// ReadySince is the Unix time in ms since when Ready is so. ReadyWhy says which
	// condition holds, or why none does.
	ReadySince int64  `json:"readySince,omitempty"`
	ReadyWhy   string `json:"readyWhy,omitempty"`
}

func metadataOf(i Info) Metadata {
	m := Metadata{ID: i.ID, Cwd: screen.Clean(i.Cwd), Owner: i.Owner, Visible: i.Visible, CreatedAt: millis(i.CreatedAt), ExitFields: exitOf(i)}
	for _, arg := range i.Command {
		m.Command = append(m.Command, screen.Clean(arg))
	}
	if i.Machine != "" {
		m.Machine, m.Name = screen.Clean(i.Machine), screen.Clean(i.Name)
	}
	m.Ready, m.Notice, m.Port, m.LentPorts = i.Ready, i.Notice, i.Port, i.LentPorts
	if a := i.Adopted; a != nil {
		m.Adopted, m.Picture = screen.Clean(a.From), a.Picture()
	}
	m.Dropped = i.Dropped
	if !i.Away.IsZero() {
		m.AwaySince, m.AwayWhy = millis(i.Away), i.AwayWhy
	}
	if !i.KeptUntil.IsZero() {
		m.KeptUntil = millis(i.KeptUntil)
	}
	m.Exited = i.Exit != nil
	if i.Input.Awaits() {
		m.Awaits = i.Input
	}
	return m
}

// listed is metadataOf with what tells terminals apart in a list: some clients show their
// model nothing but the text.
func listed(i Info) Metadata {
	m := metadataOf(i)
	m.Name, m.Running, m.Status = screen.Clean(i.Name), screen.Clean(i.Running), "running"
	m.Checkout = cleanCheckout(i.Checkout)
	if i.Exit != nil {
		m.Status = "exited"
	}
	return m
}

func exitOf(i Info) *ExitFields {
	if i.Exit == nil {
		return nil
	}
	return &ExitFields{ExitCode: i.Exit.Code, Signal: i.Exit.Signal, Reason: i.Exit.Reason, ExitedAt: millis(i.Exit.At)}
}

func detailsOf(i Info) details {
	d := details{Metadata: listed(i), Name: screen.Clean(i.Name), Title: screen.Clean(i.Title), Cols: i.Cols, Rows: i.Rows,
		Pid: i.Pid, Cursor: i.End}
	switch {
	case i.Exit != nil:
		d.Pid = 0
	case i.Input != "":
		d.Input, d.Since = i.Input, millis(i.InputSince)
	}
	if i.Ready != "" {
		d.ReadySince, d.ReadyWhy = millis(i.ReadySince), screen.Clean(i.ReadyWhy)
	}
	return d
}

func millis(t time.Time) int64 { return t.UnixMilli() }

// The parts of the description of list_terminals. listOwn is for a principal that may
// start terminals, listRead and listAway are for one that may only read, listUnseen is
// for one of this machine, and listExit is for all.
const (
	listOwn    = "List all terminal sessions with metadata, which tells whether the dev server is running: the user's (owner \"user\") and your own background terminals (owner \"agent\")."
	listRead   = "List the terminals that people's machines lend to this host, such as running dev servers (owner \"user\"), and shells of your own here if you have any (owner \"agent\"), with metadata. Names begin with the machine, such as laptop/dev-server."
	listUnseen = " \"unseen\" has ports on which programs listen that the user has started elsewhere: do not start another."
	listExit   = " Terminals that have exited stay listed and readable for a while. \"awaits\" is there when the program in a terminal waits for somebody to type."
	listAway   = " A terminal with \"awaySince\" is on a machine that is not reached now (\"awayWhy\" has the reason, if it is not the machine's): what it had printed can be read, and waits go on when the machine is back."
)

func (s *Set) listTool() tool {
	about, schema := listOwn, `{"type":"object","properties":{},"additionalProperties":false}`
	if s.control == nil {
		about = listRead + listAway
	}
	if s.opts.Loopback {
		about += listUnseen
	}
	placed, _ := s.opts.Terminals.(Placed)
	if placed != nil {
		schema = `{"type":"object","properties":{"changes":{"type":"boolean","description":"also say whether files that git tracks have changed: \"changes\" of each checkout; takes up to some seconds"}},"additionalProperties":false}`
	}
	return tool{Tool: Tool{
		Name: "list_terminals", Title: "List terminals",
		Description: about + listExit,
		InputSchema: json.RawMessage(schema),
		ReadOnly:    true, Idempotent: true,
		Long: true,
		Hint: "is the dev server running, list terminals, processes, shells, background tasks",
	}, call: func(_ context.Context, c call) (Result, error) {
		var in struct {
			Changes bool `json:"changes"`
		}
		var known any = &in
		if placed == nil {
			known = &struct{}{}
		}
		if err := c.decode(known); err != nil {
			return Result{}, err
		}
		plain, all := []Metadata{}, []details{}
		var checkouts map[string]*vocab.Checkout
		if placed != nil {
			checkouts = placed.Checkouts(in.Changes)
		}
		for _, i := range s.opts.Terminals.List() {
			m, d := listed(i), detailsOf(i)
			if c := checkouts[i.ID]; c != nil {
				m.Checkout = cleanCheckout(c)
				d.Checkout = m.Checkout
			}
			plain, all = append(plain, m), append(all, d)
		}
		r := Result{Answer: plain, Structured: structuredList{Terminals: all}, Untrusted: true}
		if u := s.unseen(); u != nil {
			r.Structured, r.Aside = structuredList{u, all}, unseenAside{u}
			r.AsideFirst = sizeOf(plain)+sizeOf(r.Structured)+sizeOf(r.Aside) > c.Shows
		}
		return r, nil
	}}
}

// structuredList is the answer for programs, and for models that are shown nothing else:
// of a long one they are shown the beginning.
type structuredList struct {
	Unseen    *Unseen   `json:"unseen,omitempty"`
	Terminals []details `json:"terminals"`
}

// unseenAside is what stands beside the list, whose form is fixed.
type unseenAside struct {
	Unseen *Unseen `json:"unseen"`
}

func cleanCheckout(c *vocab.Checkout) *vocab.Checkout {
	if c == nil {
		return nil
	}
	shown := *c
	shown.Show(screen.Clean)
	return &shown
}

// Command is a command in the words of the tools.
type Command vocab.Command

// cleanCommand returns a command with its line cleaned by screen.Clean.
func cleanCommand(c vocab.Command) *Command {
	c.Show(screen.Clean) // its checkout, too
	return (*Command)(&c)
}

// commandJSON is a Command in JSON.
type commandJSON struct {
	N          int    `json:"n"`
	Line       string `json:"line,omitempty"`
	ExitCode   *int   `json:"exitCode,omitempty"`
	Running    bool   `json:"running,omitempty"`
	Verified   bool   `json:"verified"`
	Within     int    `json:"within,omitempty"`
	DurationMs int64  `json:"durationMs,omitempty"`
	Start      int64  `json:"start"`
	End        int64  `json:"end"`

	Checkout *vocab.Checkout `json:"checkout,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (c *Command) MarshalJSON() ([]byte, error) {
	all := (*vocab.Command)(c)
	return json.Marshal(commandJSON{c.N, all.Text(), c.Exit, c.Running, c.Verified, c.Within, all.Ms(), c.Start, c.End, c.Checkout})
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Command) UnmarshalJSON(raw []byte) error {
	var j commandJSON
	if err := jsonspan.Unmarshal(raw, &j); err != nil {
		return err
	}
	*c = Command{N: j.N, Line: &j.Line, Exit: j.ExitCode, Running: j.Running, Verified: j.Verified, Within: j.Within,
		DurationMs: new(float64(j.DurationMs)), Start: j.Start, End: j.End, Checkout: j.Checkout}
	return nil
}
