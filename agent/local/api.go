package local

import (
	"time"

	"tether/agent/term"
)

// SchemaVersion is the version of the JSON that commands print and this door answers. It changes only when a field goes away or changes its
// meaning.
const SchemaVersion = 1

// Host is the only Host header that is answered: no name a resolver knows.
const Host = "tether"

// Bounds of a client's requests.
const (
	maxBody  = 1 << 20   // bytes of a request's body: a large environment fits
	maxFrame = 256 << 10 // bytes of one WebSocket message: a pasted file comes in several
)

// Terminal is one terminal as lists show it.
type Terminal struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Command  []string  `json:"command"`
	Cwd      string    `json:"cwd"`
	Cols     int       `json:"cols"`
	Rows     int       `json:"rows"`
	Owner    string    `json:"owner"`
	Visible  bool      `json:"visible"`
	Private  bool      `json:"private"`
	LentTo   []string  `json:"lent_to"`
	Loans    []Loan    `json:"loans"`          // one for each host in lent_to, in the same order
	Kept     []KeptAt  `json:"kept,omitempty"` // after the end of sharing: the offline hosts that may still keep the text
	Door     string    `json:"door,omitempty"` // the door that started the terminal
	Pid      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Exit     *Exit     `json:"exit,omitempty"`    // absent while it runs
	Running  string    `json:"running,omitempty"` // the command line that the shell is running
	Bytes    int64     `json:"bytes"`             // output so far, in bytes
	Retained int64     `json:"retained"`          // how many of the newest bytes are kept and can be read
	Attached int       `json:"attached"`          // number of attached people
	Held     bool      `json:"held"`              // a holder process keeps the terminal running without the daemon
	Lost     int64     `json:"lost_bytes"`        // bytes of output that were not recorded
	// CommandDetection reports whether the shell reports the start and end of commands. Without it, the list of commands is not meaningful.
	CommandDetection bool `json:"command_detection"`
	// Input is the state of the program in the foreground: awaiting_input, awaiting_secret, running, quiet, full_screen or unknown; absent
	// after the exit. InputSince is since when; except for running, it is the time of the last output or input.
	Input      string    `json:"input,omitempty"`
	InputSince time.Time `json:"input_since,omitzero"`
	// Ready is how far a declared terminal with a condition is: starting, ready, failed or stopped. ReadyWhy says which condition holds, or
	// why none does.
	Ready      string    `json:"ready,omitempty"`
	ReadySince time.Time `json:"ready_since,omitzero"`
	ReadyWhy   string    `json:"ready_why,omitempty"`
	// Listening is present if it was requested and the system can tell.
	Listening []Listening `json:"listening,omitempty"`
}

// Exit is how a terminal ended.
type Exit struct {
	Code   int       `json:"code"`
	Signal string    `json:"signal,omitempty"`
	At     time.Time `json:"at"`
}

// TerminalList is the answer to a list.
type TerminalList struct {
	SchemaVersion int        `json:"schema_version"`
	Terminals     []Terminal `json:"terminals"`
	Waiting       int        `json:"approvals_waiting"` // number of pending approval requests
	// Declared lists the terminals of the configuration, in its order, including those that are not running.
	Declared []Declared `json:"declared,omitempty"`
}

// Command is one command line of a shell with integration.
type Command struct {
	N          int       `json:"n"`              // counts from 1
	Line       *string   `json:"line,omitempty"` // absent when the shell did not say
	Started    time.Time `json:"started"`
	DurationMs *float64  `json:"duration_ms,omitempty"` // absent while it runs
	Exit       *int      `json:"exit,omitempty"`        // absent while it runs, or when the shell did not say
	Running    bool      `json:"running"`
	Verified   bool      `json:"verified"`         // false for marks of a foreign shell integration, which any program can print
	Within     int       `json:"within,omitempty"` // n of the verified command that it ran in, as of a shell inside ssh
	Start      int64     `json:"start"`            // raw offset of its output
	End        int64     `json:"end"`              // raw offset after it
}

// CommandList is the answer to a list of commands, oldest first.
type CommandList struct {
	SchemaVersion    int       `json:"schema_version"`
	CommandDetection bool      `json:"command_detection"`
	Commands         []Command `json:"commands"`
}

// SpawnRequest starts a terminal.
type SpawnRequest struct {
	// Command is the argv. Empty with Shell set means the person's own login shell.
	Command []string `json:"command,omitempty"`
	// Line is a line for the system's shell (sh -c) instead of a Command.
	Line  string `json:"line,omitempty"`
	Shell bool   `json:"shell,omitempty"` // start it as a login shell
	// NoIntegration starts a shell without the scripts that report commands.
	NoIntegration bool `json:"no_integration,omitempty"`
	// Env is the whole environment, NAME=value. Absent means that of the person's interactive login.
	Env []string `json:"env,omitempty"`
	// SetEnv is added to that, NAME=value; the last of a name wins.
	SetEnv  []string `json:"set_env,omitempty"`
	Name    string   `json:"name,omitempty"`
	Cwd     string   `json:"cwd"` // absolute
	Cols    uint16   `json:"cols,omitempty"`
	Rows    uint16   `json:"rows,omitempty"`
	Private bool     `json:"private,omitempty"`
	OnSlow  string   `json:"on_slow,omitempty"` // "lag" or "hold"; absent means the owner's configured value
	// LendTo names hosts; absent means the default host, if there is one and the terminal is not private.
	LendTo []string `json:"lend_to,omitempty"`
	// Leased binds the terminal to who follows it: it is killed some seconds after the last Follow with Lease has ended, or when none begins.
	Leased bool `json:"leased,omitempty"`
	// Door says where an agent's request came in, for the policy: "cli" (the default) or "acp".
	Door string `json:"door,omitempty"`
	// Approved names who has approved exactly this request at that door.
	Approved string `json:"approved,omitempty"`
}

// Environment is that of the person's interactive login.
type Environment struct {
	SchemaVersion int      `json:"schema_version"`
	Env           []string `json:"env"` // NAME=value
}

// PairRequest adds a host.
type PairRequest struct {
	Name string `json:"name,omitempty"` // "" is made of the URL
	URL  string `json:"url"`
	// Also are further URLs of the same host, which may be several nodes: the link tries another one where one does not answer.
	Also    []string `json:"also,omitempty"`
	Token   string   `json:"token,omitempty"`
	Pin     string   `json:"pin,omitempty"`     // client.Pin of the host's certificate
	Default bool     `json:"default,omitempty"` // lend here when nothing else is said; the first host is it anyway
	// AssumeClientTerminals pairs with a host that does not say that it takes client-executed terminals.
	AssumeClientTerminals bool   `json:"assume_client_terminals,omitempty"`
	OnDispose             string `json:"on_dispose,omitempty"` // auto, kill or unlend
	// Store is where secrets are kept, keyring or file; "" means the present or best place.
	Store string `json:"store,omitempty"`
}

// Status is the daemon's knowledge of itself, its hosts and its terminals, without asking anybody.
type Status struct {
	SchemaVersion int          `json:"schema_version"`
	Running       bool         `json:"running"` // false only if no daemon is running
	Version       string       `json:"version,omitempty"`
	Pid           int          `json:"pid,omitempty"`
	Started       time.Time    `json:"started,omitzero"`
	Socket        string       `json:"socket"`
	TCP           string       `json:"tcp,omitempty"` // loopback TCP address, if the daemon listens on TCP
	Log           string       `json:"log,omitempty"`
	Terminals     Count        `json:"terminals"`
	Logs          LogMemory    `json:"logs"`
	Holders       Holders      `json:"holders"`
	Hosts         []HostStatus `json:"hosts"`
	Waiting       int          `json:"approvals_waiting"` // number of pending approval requests
	// Degraded lists current problems, oldest first.
	Degraded []Degraded `json:"degraded"`
	// Secrets says where tokens and keys are stored; absent before the first pairing.
	Secrets *SecretStore `json:"secrets,omitempty"`
	// Root is present if the daemon runs as root.
	Root *Root `json:"root,omitempty"`
	// Agents lists the running programs that are known to be agents.
	Agents []AgentStatus `json:"agents,omitempty"`
	// Sandbox is present if any agent has a sandbox.
	Sandbox *SandboxStatus `json:"sandbox,omitempty"`
	// Unredacted is present if some agents on this machine are shown terminals without masks.
	Unredacted *Unredacted `json:"unredacted,omitempty"`
}

// Unredacted says which agents are shown secrets as they were printed.
type Unredacted struct {
	All    bool     `json:"all"`    // all agents except those in except
	Names  []string `json:"names"`  // as the configuration names them, such as agent:cursor
	Except []string `json:"except"` // agents
}

// AgentStatus is an agent's own program, with all that it has started itself.
type AgentStatus struct {
	Name     string `json:"name"`
	Pid      int    `json:"pid"`
	Confined bool   `json:"confined"` // tether sandbox or tether acp --sandbox confines the agent itself; its terminals may be confined independently
}

// SandboxStatus is the best sandbox that is available for agents' commands.
type SandboxStatus struct {
	Kind     string `json:"kind,omitempty"`     // wall, landlock or seatbelt
	Wall     bool   `json:"wall"`               // false: the sandbox only protects files from changes
	Abstract bool   `json:"abstract,omitempty"` // the kernel cannot close abstract sockets
	Error    string `json:"error,omitempty"`    // why no sandbox is available; agents with a sandbox cannot run commands then
}

// Root describes the effects of running as root, or as LocalSystem of Windows.
type Root struct {
	// Lends reports whether terminals are lent as for other users; false: only terminals that are named are lent.
	Lends bool `json:"lends"`
}

// SecretStore is where secrets are kept.
type SecretStore struct {
	Store string `json:"store"`          // keyring or file
	Path  string `json:"path,omitempty"` // path of the file
	Why   string `json:"why,omitempty"`  // why the keyring is not used
}

// The places where secrets are kept, see [SecretStore].
const (
	StoreKeyring = "keyring"
	StoreFile    = "file"
)

// Degraded is a problem that does not stop the daemon.
type Degraded struct {
	Cause string    `json:"cause"` // stable identifier, such as "state directory"
	Text  string    `json:"text"`  // the problem and the remedy
	Since time.Time `json:"since"`
}

// Holders are the processes in which terminals outlive the daemon.
type Holders struct {
	Alive    int    `json:"alive"`
	InDaemon int    `json:"in_daemon"`     // terminals without a holder; they end with the daemon
	Off      string `json:"off,omitempty"` // why the person's terminals have none
}

// Count is how many terminals there are.
type Count struct {
	Running int `json:"running"`
	Exited  int `json:"exited"` // exited terminals whose output is still kept
	Lent    int `json:"lent"`   // running terminals that are lent
	There   int `json:"there"`  // lent terminals that at least one host has now
	Awaits  int `json:"awaits"` // running terminals whose program waits for typed input
	// NotReady is how many declared terminals run and are not ready: they are starting, or have failed to become ready.
	NotReady int `json:"not_ready"`
}

// LogMemory is the kept output of all terminals.
type LogMemory struct {
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
}

// HostStatus is one paired host and the link to it.
type HostStatus struct {
	Name string `json:"name"`
	URL  string `json:"url"` // without credentials
	// Also are its further URLs.
	Also []string `json:"also,omitempty"`
	Pin  string   `json:"pin,omitempty"`
	// Credential is how this machine authenticates: key (its own), token or none.
	Credential string    `json:"credential"`
	HostKey    string    `json:"host_key,omitempty"` // fingerprint of the host's key, if paired by keys
	Default    bool      `json:"default"`
	State      string    `json:"state"` // connecting, online, waiting, refused, unsupported
	Since      time.Time `json:"since"`
	DownSince  time.Time `json:"down_since,omitzero"` // absent while online
	NextRetry  time.Time `json:"next_retry,omitzero"`
	Error      string    `json:"error,omitempty"`    // error of the last attempt; absent while online
	Protocol   string    `json:"protocol,omitempty"` // like the next two fields, only while online
	Server     string    `json:"server,omitempty"`
	Resume     bool      `json:"resume"`
	Refused    int64     `json:"refused_actions"`
	// LentMeans describes who sees a terminal that is lent there without naming anybody: everybody at the host, or its audience: the owner of
	// this machine there, and that person's agents. Absent while not online, like the next two.
	LentMeans string `json:"lent_means,omitempty"`
	Owner     string `json:"machine_owner,omitempty"` // who that is, as the host says; absent: its administrators
	Shares    bool   `json:"shares"`                  // the host takes links for guests
	// Park is for how many milliseconds the host may keep shared text while this machine is away, the smaller of lend.park and what the host
	// allows; absent if it keeps none, and while not online.
	Park int64 `json:"park_ms,omitempty"`
	// ClockSkew is how many seconds the host's clock is ahead of this machine's, accurate to about a second; absent if the clocks agree, and
	// while not online.
	ClockSkew int64 `json:"clock_skew_seconds,omitempty"`
	// Unacked is how many bytes of text the host has not acknowledged, over all lent terminals. Gaps is how often bytes were dropped before
	// they could be sent, since the daemon's start, and GapBytes how many.
	Unacked  int64  `json:"unacked_bytes"`
	Gaps     int    `json:"gaps"`
	GapBytes int64  `json:"gap_bytes"`
	Lent     []Lent `json:"lent"`
	// Withdrawn is how many terminals that are not shared any more the host may still keep, since it is offline and does not know; KeptUntil
	// is until when at the latest. Absent if there are none.
	Withdrawn int       `json:"withdrawn,omitempty"`
	KeptUntil time.Time `json:"kept_until,omitzero"`
	Tools     HostTools `json:"tools"`
}

// Lent is one terminal at one host.
type Lent struct {
	ID      string `json:"id"`
	URI     string `json:"uri"`
	Unacked int64  `json:"unacked_bytes"`
	Lost    int64  `json:"lost_bytes"`
	// There reports whether the host has the terminal now; false: pending.
	There   bool   `json:"there"`
	Problem string `json:"problem,omitempty"`
	// KeptUntil is until when the host may keep the terminal's text while this machine is away (lend.park); absent while it is online, and if
	// it keeps nothing.
	KeptUntil time.Time `json:"kept_until,omitzero"`
	// Observers is the number of observers at the host; absent if the host does not report it.
	Observers *int `json:"observers,omitempty"`
	// Watchers lists who may watch and who does, according to the host; absent if it does not report them.
	Watchers *Watchers `json:"host_says,omitempty"`
}

// Values of HostStatus.LentMeans.
const (
	LentToEverybody = "everybody"
	LentToAudience  = "audience"
)

// terminalFrom converts the core's info to this door's form.
func terminalFrom(i term.Info) Terminal {
	t := Terminal{
		ID: string(i.ID), Name: i.Name, Title: i.Title, Command: i.Command, Cwd: i.Cwd,
		Cols: int(i.Size.Cols), Rows: int(i.Size.Rows), Owner: i.Owner.String(), Visible: i.Visible, Private: i.Private,
		LentTo: i.LentTo, Pid: i.Pid, Started: i.Started, Bytes: i.Bytes, Retained: i.Retained, Attached: i.Attached, Held: i.Held, Lost: i.Lost,
		CommandDetection: i.CommandDetection, Loans: loansFrom(i.Loans), Door: i.Door,
		Ready: string(i.Ready.State), ReadySince: i.Ready.Since, ReadyWhy: i.Ready.Why,
	}
	if t.LentTo == nil {
		t.LentTo = []string{}
	}
	if i.Exit != nil {
		t.Exit = &Exit{Code: i.Exit.Code, Signal: i.Exit.Signal, At: i.Exit.At}
	}
	if i.Running != nil {
		t.Running = i.Running.Line
	}
	return t
}

// commandFrom converts the core's command to this door's form.
func commandFrom(c term.Command) Command {
	out := Command{N: c.N, Started: c.Started, Exit: c.Exit, Running: !c.Done, Verified: c.Verified, Within: c.Within, Start: c.Start, End: c.End}
	if c.HasLine {
		out.Line = &c.Line
	}
	if c.Done {
		ms := float64(c.Duration.Microseconds()) / 1000
		out.DurationMs = &ms
	}
	return out
}
