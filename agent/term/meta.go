package term

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"tether/agent/loans"
	"tether/agent/output"
	"tether/internal/jsonspan"
	"tether/vocab"
)

// meta is a terminal's state that a holder keeps for the next daemon, as JSON in its
// meta: everything that does not follow from the output.
//
// A newer or older daemon reads it. Each version writes only the fields that it knows; a
// field never changes its meaning. See package holder.
type meta struct {
	Version int      `json:"v"`
	Name    string   `json:"name"`
	Short   string   `json:"short,omitempty"` // Name of a runner without its directory
	Command []string `json:"command"`
	Cwd     string   `json:"cwd"` // at the start
	// CommandBytes has, by their index, the elements of Command that are not UTF-8, which
	// JSON cannot carry; CwdBytes is such a Cwd.
	CommandBytes map[int][]byte `json:"command_bytes,omitempty"`
	CwdBytes     []byte         `json:"cwd_bytes,omitempty"`
	Started      int64          `json:"started"` // Unix ns
	Owner        recordedActor  `json:"owner"`
	Visible      bool           `json:"visible,omitempty"`
	Promoted     bool           `json:"promoted,omitempty"`
	Starter      string         `json:"starter,omitempty"` // the agent that owned it before it was promoted
	Private      bool           `json:"private,omitempty"`
	OnSlow       string         `json:"on_slow,omitempty"`
	IdleMs       int64          `json:"idle_ms,omitempty"`  // how long it may be idle
	LimitMs      int64          `json:"limit_ms,omitempty"` // how long an agent's terminal may run
	Leased       bool           `json:"leased,omitempty"`   // it ends when the program that requested it has ended
	Unsigned     bool           `json:"unsigned,omitempty"` // its starter showed no sign of a person
	Port         int            `json:"port,omitempty"`     // the TCP port that it was given
	Nonce        string         `json:"nonce,omitempty"`    // of the shell's marks
	Door         string         `json:"door,omitempty"`     // through which it was started
	// Adopted is the pane that it reads. A daemon that does not know the field takes the
	// reader for a program, which ignores what it is sent.
	Adopted *vocab.Adopted `json:"adopted,omitempty"`
	// Secrets are values that no host may see. A holder has them in its memory anyway, in
	// the environment from which they come.
	Secrets   []string             `json:"secrets,omitempty"`
	Clipboard bool                 `json:"clipboard,omitempty"` // the text includes sequences that set it
	Lent      []loans.Recorded     `json:"lent,omitempty"`
	Attached  int                  `json:"attached,omitempty"`  // people
	Commands  []output.PastCommand `json:"commands,omitempty"`  // the newest 200, fewer if the meta would be too large
	Checkouts []vocab.Checkout     `json:"checkouts,omitempty"` // of the newest commands, at most maxRecordedCheckouts
	Sizes     []output.SizeAt      `json:"sizes,omitempty"`     // at the oldest output, and later ones, the newest 256
	// Exit is present when a daemon has recorded the exit and told the attached people of
	// this machine. How the child ended is known to the holder.
	Exit *recordedExit `json:"exit,omitempty"`
}

// recordedExit is the part of an exit that a holder does not know.
type recordedExit struct {
	Reason vocab.ExitReason `json:"reason"`
}

const recordVersion = 1

// recordedActor is an owner.
type recordedActor struct {
	Role string `json:"role"`
	Name string `json:"name,omitempty"`
}

// Bounds of a record, in bytes. A holder takes 64 KiB.
const (
	maxRecord         = 60 << 10
	maxLinkState      = 1 << 10
	maxRecordedNumber = 200 // of commands

	maxRecordedCheckouts = 16 // their paths are long
)

var roleNames = map[Role]string{RoleUser: "user", RoleAgent: "agent"}

var onSlowNames = map[OnSlow]string{Lag: "lag", Hold: "hold"}

// recordedLocked returns the terminal's record. Commands that do not fit are left out,
// the oldest first.
func (t *Terminal) recordedLocked() []byte {
	r := meta{
		Version: recordVersion, Name: t.origin.name, Short: t.origin.short, Command: t.origin.command, Cwd: t.origin.cwd, Started: t.origin.started.UnixNano(),
		Owner: recordedActor{roleNames[t.ownership.owner.Role], t.ownership.owner.Name}, Visible: t.ownership.visible, Promoted: t.ownership.promoted, Starter: t.ownership.starter.Name, Private: t.origin.private,
		OnSlow: onSlowNames[t.origin.onSlow], IdleMs: t.origin.idleAfter.Milliseconds(), LimitMs: t.origin.endAfter.Milliseconds(), Leased: t.origin.leased, Unsigned: t.origin.unsigned, Port: t.origin.port,
		Nonce: t.origin.scanning.Nonce, Attached: t.ownership.attached, Door: t.origin.door, Secrets: t.origin.secrets, Clipboard: t.origin.clipboard, Adopted: t.origin.adopted,
	}
	r.Command, r.CommandBytes = jsonspan.Pack(r.Command)
	r.Cwd, r.CwdBytes = jsonspan.PackOne(r.Cwd)
	r.Lent = t.loans.Recorded(func(host string) bool { return t.ending.heard[host] })
	r.Sizes = t.log.Sizes()
	if t.ending.exit != nil {
		r.Exit = &recordedExit{t.ending.exit.Reason}
	}
	newest := t.log.Newest(maxRecordedNumber)
	for i := range newest {
		r.Commands = append(r.Commands, output.PastOf(&newest[i]))
	}
	for i := len(newest) - 1; i >= 0; i-- {
		r.Commands[i].Checkout = r.placeOf(newest[i].Checkout)
	}
	for {
		data, err := json.Marshal(r)
		if err == nil && len(data) <= maxRecord || len(r.Commands)+len(r.Command) == 0 {
			return data
		}
		if len(r.Commands) == 0 {
			r.Command = r.Command[:len(r.Command)/2] // a command line that alone exceeds a record
			maps.DeleteFunc(r.CommandBytes, func(i int, _ []byte) bool { return i >= len(r.Command) })
			continue
		}
		r.Commands = r.Commands[(len(r.Commands)+1)/2:]
	}
}

// placeOf returns the place of a command's checkout in r.Checkouts, which takes it up; 0
// if there is none, or no room.
func (r *meta) placeOf(c *vocab.Checkout) int {
	if c == nil {
		return 0
	}
	if i := slices.Index(r.Checkouts, *c); i >= 0 {
		return i + 1
	}
	if len(r.Checkouts) >= maxRecordedCheckouts {
		return 0
	}
	r.Checkouts = append(r.Checkouts, *c)
	return len(r.Checkouts)
}

// parseRecord decodes a record. For one that cannot be read, or has another version, it
// returns the record of a private terminal of the person, so that they see the terminal
// and can end it.
func parseRecord(p []byte) meta {
	var r meta
	err := json.Unmarshal(p, &r)
	if err == nil && r.Version != recordVersion {
		err = fmt.Errorf("version %d", r.Version)
	}
	if err != nil {
		r = meta{Private: true, Owner: recordedActor{Role: roleNames[RoleUser]}}
	}
	jsonspan.Unpack(r.Command, r.CommandBytes)
	r.Cwd = cmp.Or(string(r.CwdBytes), r.Cwd, "/")
	if len(r.Command) == 0 {
		r.Command = []string{"unknown"}
	}
	if r.Private {
		r.Lent = nil
	}
	r.IdleMs, r.LimitMs = min(max(r.IdleMs, 0), maxRecordedMs), min(max(r.LimitMs, 0), maxRecordedMs)
	return r
}

// maxRecordedMs bounds the durations in a record, in milliseconds: ten years.
const maxRecordedMs = 10 * 366 * 24 * 3600 * 1000

// Recorded returns the terminal's name and owner from the meta of a holder. An unreadable
// owner counts as the person; a terminal that was never listed has no owner.
func Recorded(meta []byte) (name string, owner Actor) {
	if len(meta) == 0 {
		return "", Actor{}
	}
	r := parseRecord(meta)
	return r.Name, r.owner()
}

// owner returns the recorded owner; an unknown kind of owner counts as the person.
func (r *meta) owner() Actor {
	if r.Owner.Role == roleNames[RoleAgent] && r.Owner.Name != "" {
		return Agent(r.Owner.Name)
	}
	return User
}

// starter returns the agent that has started a terminal that is now the person's, nobody
// if that is not recorded.
func (r *meta) starter() Actor {
	if !r.Promoted || r.Starter == "" {
		return Actor{}
	}
	return Agent(r.Starter)
}

// startedBy returns the agent that has started the terminal, even if it is the person's
// now.
func (r *meta) startedBy() Actor {
	if a := r.starter(); a.Role == RoleAgent {
		return a
	}
	return r.owner()
}

func (r *meta) onSlow() OnSlow {
	for how, name := range onSlowNames {
		if name == r.OnSlow {
			return how
		}
	}
	return ByOwner
}
