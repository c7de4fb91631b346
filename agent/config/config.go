package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"tether/internal/textfile"
	"tether/platform/dirs"
	"tether/platform/secret"
)

// Config is the whole file. The zero value is not usable; see [Default].
type Config struct {
	Daemon    Daemon    `toml:"daemon"`
	Terminals Terminals `toml:"terminals"`
	// ShellIntegration says which marks of shells make commands.
	ShellIntegration ShellIntegration `toml:"shell_integration"`
	Uplink           Uplink           `toml:"uplink"`
	Local            Local            `toml:"local"`
	MCP              MCP              `toml:"mcp"`
	Agents           Agents           `toml:"agents"`
	Identity         Identity         `toml:"identity"`
	Policy           Policy           `toml:"policy"`
	Lend             Lend             `toml:"lend"`
	History          History          `toml:"history"`
	// Terminal are the declared terminals, in the order of the file.
	Terminal []Declared `toml:"terminal"`
	// ProblemMatcher are further matchers of problems, in the order in which they are
	// tried.
	ProblemMatcher []Matcher `toml:"problem_matcher"`
	// Adopt are the rules that adopt panes of other programs.
	Adopt []Adopt `toml:"adopt"`
	// Notify are the rules that tell the person what happens.
	Notify []Notify `toml:"notify"`
}

// Daemon is about the process itself.
type Daemon struct {
	// LogLevel is how much goes to the log file.
	LogLevel string `toml:"log_level" oneof:"debug info warn error"`
}

// Terminals are the bounds of terminals and their output. See term.Options.
type Terminals struct {
	// LogBytes is how much of each terminal's output is kept.
	LogBytes Size `toml:"log_bytes" range:"64KiB..1GiB"`
	// TotalLogBytes is how much is kept over all terminals.
	TotalLogBytes Size `toml:"total_log_bytes" range:"1MiB..1TiB"`
	// MaxRunning bounds the running terminals, KeepExited the exited ones that can still
	// be read, KeepFor their age.
	MaxRunning int      `toml:"max_running" range:"1..10000"`
	KeepExited int      `toml:"keep_exited" range:"1..10000"`
	KeepFor    Duration `toml:"keep_for" range:"1s..720h"`
	// OnSlowUser and OnSlowAgent are the effect of a slow reader on a child, by the
	// terminal's owner.
	OnSlowUser  string `toml:"on_slow_user" oneof:"lag hold"`
	OnSlowAgent string `toml:"on_slow_agent" oneof:"lag hold"`
	// StallTime is how long a slow reader may hold a child.
	StallTime Duration `toml:"stall_time" range:"100ms..10m"`
	// LoginTimeout is how long a start waits for the start-up files of the person's login
	// shell.
	LoginTimeout Duration `toml:"login_timeout" range:"1s..5m"`
	// KillGrace is the time between TERM and KILL.
	KillGrace Duration `toml:"kill_grace" range:"100ms..1m"`
}

// History is about what is kept on disk of terminals' runs.
type History struct {
	// Keep is how long ended runs are kept; 0 turns the history off and removes it.
	Keep Duration `toml:"keep" range:"0s..3650d"`
	// MaxBytes bounds the history on disk. The oldest runs go first.
	MaxBytes Size `toml:"max_bytes" range:"16MiB..1TiB"`
}

// ShellIntegration is about the marks that shells print around prompts and commands.
type ShellIntegration struct {
	// Unsigned is the treatment of marks without the terminal's nonce, as those of a
	// shell in ssh: mark makes unverified commands of them, ignore does not.
	Unsigned string `toml:"unsigned" oneof:"mark ignore"`
}

// The words of ShellIntegration.Unsigned.
const (
	UnsignedMark   = "mark"
	UnsignedIgnore = "ignore"
)

// Uplink is about the links to hosts.
type Uplink struct {
	// Heartbeat is the time between two pings; a link whose ping is not answered within
	// one more is given up.
	Heartbeat Duration `toml:"heartbeat" range:"1s..5m"`
	// ClientTools lets sessions be offered this machine's tools at the hosts for which
	// the person has switched them on; without it they are nowhere.
	ClientTools bool `toml:"client_tools"`
}

// Default returns the configuration of an empty file.
func Default() Config {
	return Config{
		Daemon: Daemon{LogLevel: "info"},
		Terminals: Terminals{
			LogBytes: 4 << 20, TotalLogBytes: 256 << 20, MaxRunning: 200, KeepExited: 50, KeepFor: Duration(time.Hour),
			OnSlowUser: "lag", OnSlowAgent: "hold", StallTime: Duration(10 * time.Second), LoginTimeout: Duration(10 * time.Second), KillGrace: Duration(3 * time.Second),
		},
		ShellIntegration: ShellIntegration{Unsigned: UnsignedMark},
		Uplink:           Uplink{Heartbeat: Duration(15 * time.Second), ClientTools: true},
		Local:            Local{Origins: []string{}},
		MCP:              MCP{IdleTimeout: Duration(5 * time.Minute)},
		Agents:           Agents{Redact: true, Unseen: UnseenPorts},
		Identity:         Identity{Mine: []string{}, Agents: []string{}},
		Policy:           defaultPolicy(),
		Lend:             defaultLend(),
		History:          History{Keep: Duration(7 * day), MaxBytes: 256 << 20},
	}
}

// relations returns conflicts between keys that are valid by themselves.
func (c *Config) relations() []Problem {
	all := append(c.Local.problems(), c.declaredProblems()...)
	all = append(all, c.matcherProblems()...)
	all = append(all, c.adoptProblems()...)
	all = append(all, c.notifyProblems()...)
	all = append(all, c.Lend.problems()...)
	all = append(all, c.Agents.problems()...)
	all = append(all, c.Identity.problems()...)
	_, wrong := c.Policy.Builtin.AtACP()
	for _, p := range wrong {
		all = append(all, Problem{Key: p.From, Text: p.Text})
	}
	t := &c.Terminals
	if t.LogBytes > t.TotalLogBytes {
		all = append(all, Problem{Key: "terminals.log_bytes", Text: "it is more than terminals.total_log_bytes, which is " + t.TotalLogBytes.String()})
	}
	const least = 64 << 10 // kept for each terminal, however many there are, see term.Options
	if need := Size(t.MaxRunning+t.KeepExited) * least; t.TotalLogBytes < need {
		all = append(all, Problem{Key: "terminals.total_log_bytes",
			Text: "each of max_running and keep_exited terminals needs 64KiB: at least " + need.String() + ", or fewer terminals"})
	}
	return all
}

// Path is where the file is; it need not be there.
func Path(d dirs.Dirs) string { return filepath.Join(d.Config, "config.toml") }

// Load reads the file, and then applies over, in which a later setting overrides an
// earlier one. A missing file means the defaults. Errors: *Error for faults of the
// contents, others for a file that cannot be read or that others may change.
func Load(path string, over ...Setting) (Config, error) {
	data, err := secret.ReadOwned(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Default(), err
	}
	return parse(path, data, over)
}

// Origins returns the sources of the values that Load would return, by key; a missing key
// has its default.
func Origins(path string, over ...Setting) (map[string]Source, error) {
	data, err := secret.ReadOwned(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if data, err = textfile.Decode(data); err != nil {
		return nil, err
	}
	from := map[string]Source{}
	lines := positionsIn(data)
	for _, k := range Keys() {
		if lines[k.Name] > 0 {
			from[k.Name] = FromFile
		}
	}
	for _, s := range over {
		from[s.Key] = s.Source
	}
	return from, nil
}
