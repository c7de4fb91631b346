package localapi

import (
	"time"

	"tether/vocab"
)

// Status is what the daemon knows of itself, its hosts and its terminals. It asks nobody
// for it.
type Status struct {
	SchemaVersion int            `json:"schema_version"`
	Running       bool           `json:"running"` // false only if no daemon is running
	Version       string         `json:"version,omitempty"`
	Pid           int            `json:"pid,omitempty"`
	Started       time.Time      `json:"started,omitzero"`
	Socket        string         `json:"socket"`
	TCP           string         `json:"tcp,omitempty"` // loopback TCP address, if the daemon listens on TCP
	Log           string         `json:"log,omitempty"`
	Terminals     Count          `json:"terminals"`
	Logs          LogMemory      `json:"logs"`
	History       *HistoryStatus `json:"history,omitempty"` // of runs on disk; for the person
	Holders       Holders        `json:"holders"`
	Hosts         []HostStatus   `json:"hosts"`
	Waiting       int            `json:"approvals_waiting"`
	Degraded      []Degraded     `json:"degraded"`          // oldest first
	Secrets       *SecretStore   `json:"secrets,omitempty"` // of tokens and keys, after the first pairing
	Root          *Root          `json:"root,omitempty"`
	Agents        []AgentStatus  `json:"agents,omitempty"`
	Connections   []Connections  `json:"connections,omitempty"` // by caller; agents see only their own
	Sandbox       *SandboxStatus `json:"sandbox,omitempty"`
	Unredacted    *Unredacted    `json:"unredacted,omitempty"` // agents that are shown terminals without masks

	Checkouts []CheckoutInUse `json:"checkouts,omitempty"` // of running terminals
	Adopted   []AdoptedPane   `json:"adopted,omitempty"`   // running terminals that read another program's pane
}

// HistoryStatus is what is kept on disk of terminals' runs.
type HistoryStatus struct {
	On       bool      `json:"on"` // false if [history] keep is 0s
	Runs     int       `json:"runs"`
	Bytes    int64     `json:"bytes"` // on disk
	MaxBytes int64     `json:"max_bytes"`
	Keep     string    `json:"keep"`
	Oldest   time.Time `json:"oldest,omitzero"`    // when the oldest run began
	RoundMs  int64     `json:"round_ms,omitempty"` // until output is safe on the disk, if more than 2 s
}

// CheckoutInUse is a git work tree with the terminals whose directories are in it.
type CheckoutInUse struct {
	vocab.Checkout
	Terminals []string `json:"terminals"` // ids
}

// Unredacted says which agents are shown secrets as they were printed.
type Unredacted struct {
	All    bool     `json:"all"`    // all agents except those in except
	Names  []string `json:"names"`  // as the configuration names them, such as agent:cursor
	Except []string `json:"except"` // agents
}

// AgentStatus is an agent's own program, with all programs that it has started itself.
type AgentStatus struct {
	Name     string `json:"name"`
	Pid      int    `json:"pid"`
	Confined bool   `json:"confined"` // the agent itself runs in a sandbox
}

// Connections is how many connections to the daemon one caller has open.
type Connections struct {
	Of   string `json:"of"` // user, agent NAME or nobody
	Open int    `json:"open"`
	Max  int    `json:"max"` // with more, an idle one is closed, or the new one refused
}

// SandboxStatus is the best sandbox that is available for agents' commands.
type SandboxStatus struct {
	Kind     string `json:"kind,omitempty"`     // wall, landlock or seatbelt
	Wall     bool   `json:"wall"`               // false: the sandbox only protects files from changes
	Abstract bool   `json:"abstract,omitempty"` // the kernel cannot close abstract sockets
	Error    string `json:"error,omitempty"`    // why none is available; agents with a sandbox then run nothing
}

// Root describes the effects of running as root, or as LocalSystem of Windows.
type Root struct {
	Lends bool `json:"lends"` // as for other users; false: only named terminals
}

// SecretStore is where secrets are kept.
type SecretStore struct {
	Store string `json:"store"` // keyring or file
	Path  string `json:"path,omitempty"`
	Why   string `json:"why,omitempty"` // why the keyring is not used
}

// The places where secrets are kept, see [SecretStore].
const (
	StoreKeyring = "keyring"
	StoreFile    = "file"
)

// Degraded is a problem that does not stop the daemon.
type Degraded struct {
	Cause string    `json:"cause"` // stable identifier, such as "state directory"
	Text  string    `json:"text"`
	Since time.Time `json:"since"`
}

// Holders are the processes in which terminals outlive the daemon.
type Holders struct {
	Alive int `json:"alive"`
}

// Count is how many terminals there are.
type Count struct {
	Running  int `json:"running"`
	Exited   int `json:"exited"`    // those still kept
	Lent     int `json:"lent"`      // running ones that are lent
	There    int `json:"there"`     // lent ones that a host has now
	Awaits   int `json:"awaits"`    // running ones that wait for typed input
	NotReady int `json:"not_ready"` // running declared ones that are not ready
}

// LogMemory is the size of the kept output of all terminals, and its bound.
type LogMemory struct {
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
}

// Health is the answer for service monitors: any answer means that the daemon serves.
type Health struct {
	SchemaVersion int        `json:"schema_version"`
	Status        string     `json:"status"` // "ok", or "degraded" when something does not work while the daemon goes on
	Degraded      []Degraded `json:"degraded"`
}

// LogLevel is how much the daemon logs.
type LogLevel struct {
	SchemaVersion int    `json:"schema_version"`
	Level         string `json:"level"`
}

// LogLevelRequest changes the daemon's log level.
type LogLevelRequest struct {
	Level string `json:"level"`
}

// HandOver is the answer of a daemon that ends and leaves its terminals to the next one.
type HandOver struct {
	SchemaVersion int `json:"schema_version"`
	Kept          int `json:"kept"` // number of terminals that run on
}

// Environment is the environment of the person's interactive login.
type Environment struct {
	SchemaVersion int            `json:"schema_version"`
	Env           []string       `json:"env"`                 // NAME=value
	EnvBytes      map[int][]byte `json:"env_bytes,omitempty"` // entries that are not UTF-8, by index
}

// SandboxRequest asks how to run an agent's own program in the sandbox of that agent.
type SandboxRequest struct {
	Command []string `json:"command"`
	Cwd     string   `json:"cwd"` // absolute
	// CommandBytes has, by their index, the arguments that are not UTF-8; CwdBytes is
	// such a Cwd.
	CommandBytes map[int][]byte `json:"command_bytes,omitempty"`
	CwdBytes     []byte         `json:"cwd_bytes,omitempty"`
}

// SandboxReply has the command that runs the agent's program in its sandbox.
type SandboxReply struct {
	SchemaVersion int      `json:"schema_version"`
	Command       []string `json:"command"`
	// CommandBytes has, by their index, the arguments that are not UTF-8.
	CommandBytes map[int][]byte `json:"command_bytes,omitempty"`
}
