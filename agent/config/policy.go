package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Policy limits the commands that agents may run. See docs/POLICY.md.
type Policy struct {
	// BlockList is how the built-in rules read a command: its words and those of every
	// command in it, or in addition any text that looks like one.
	BlockList string `toml:"block_list" oneof:"parsed literal off"`
	// Default is the treatment of an agent's command that no rule matches.
	Default string `toml:"default" oneof:"allow ask deny"`
	// AskTimeout is how long a question waits; then it is denied.
	AskTimeout Duration `toml:"ask_timeout" range:"1s..1h"`
	// AskWait is how long a tool call waits for an answer before it returns "call again".
	// Several clients give a call up after 60 s.
	AskWait Duration `toml:"ask_wait" range:"1s..1h"`
	// Notify tells the person's desktop about questions.
	Notify bool `toml:"notify"`
	// AuditBytes bounds one of the four files of the audit log.
	AuditBytes Size `toml:"audit_bytes" range:"64KiB..1GiB"`
	// HideEnv names variables of a login that agents' commands do not get.
	HideEnv    []string         `toml:"hide_env"`
	Limits     PolicyLimits     `toml:"limits"`
	Builtin    PolicyBuiltin    `toml:"builtin"`
	Rules      []PolicyRule     `toml:"rules"`
	Principals []PolicyIdentity `toml:"principals"`
}

// PolicyLimits bounds the terminals of one agent.
type PolicyLimits struct {
	// SpawnsPerMinute and Background are about terminals in the background,
	// CommandsPerMinute and Commands about the others.
	SpawnsPerMinute   int `toml:"spawns_per_minute" range:"1..10000"`
	Background        int `toml:"background" range:"1..10000"`
	CommandsPerMinute int `toml:"commands_per_minute" range:"1..10000"`
	Commands          int `toml:"commands" range:"1..10000"`
	// BackgroundTotal bounds the background terminals of all agents together: an agent
	// that takes another name gets no more.
	BackgroundTotal int `toml:"background_total" range:"1..10000"`
	// CommandTime is how long one of the others may run, CPUTime how much of the
	// processor's time each process of an agent's may take; 0 bounds neither.
	CommandTime Duration `toml:"command_time" range:"0s..720h"`
	CPUTime     Duration `toml:"cpu_time" range:"0s..720h"`
	// Processes and Memory bound all that one agent runs, where the system can do that; 0
	// bounds nothing.
	Processes int  `toml:"processes" range:"0..4194304"`
	Memory    Size `toml:"memory" range:"0KiB..1024GiB"`
	// Questions bounds the waiting questions of one agent.
	Questions int `toml:"questions" range:"1..100"`
}

// PolicyBuiltin is the effect of each built-in rule.
type PolicyBuiltin struct {
	Commands     string `toml:"commands" oneof:"allow ask deny"`
	Patterns     string `toml:"patterns" oneof:"allow ask deny"`
	Substitution string `toml:"substitution" oneof:"allow ask deny"`
	Unparsed     string `toml:"unparsed" oneof:"ask deny"`
	Dynamic      string `toml:"dynamic" oneof:"allow ask deny"`
	Code         string `toml:"code" oneof:"allow ask deny"`
	Script       string `toml:"script" oneof:"allow ask deny"`
	Interactive  string `toml:"interactive" oneof:"allow ask deny"`
	Options      string `toml:"options" oneof:"allow ask deny"`
	Destructive  string `toml:"destructive" oneof:"allow ask deny"`
	Elevation    string `toml:"elevation" oneof:"allow ask deny"`
	Environment  string `toml:"environment" oneof:"allow ask deny"`
	Files        string `toml:"files" oneof:"allow ask deny"`
	Tether       string `toml:"tether" oneof:"allow ask deny"`
	// ACP are the exceptions for agents behind tether acp, as "commands=ask".
	ACP []string `toml:"acp"`
}

// AtACP returns the effects for agents behind tether acp, and the exceptions that are
// none.
func (b PolicyBuiltin) AtACP() (PolicyBuiltin, []Problem) {
	d := decoder{from: "policy.builtin.acp"}
	for _, exception := range b.ACP {
		rule, effect, _ := strings.Cut(exception, "=")
		v, f := find(reflect.ValueOf(&b).Elem(), []string{rule})
		if f == nil || f.words == nil {
			d.problem(nil, "%s: want a rule and its effect, as in %q", shown(exception), "commands=ask")
			continue
		}
		d.text(v, f, effect, []string{"policy", "builtin", rule})
	}
	return b, d.problems
}

// formerACP returns the exceptions that take the place of keys of policy.acp, as a list
// in TOML.
func formerACP(keys map[string]any) string {
	all := slices.Clone(defaultPolicy().Builtin.ACP)
	for _, rule := range slices.Sorted(maps.Keys(keys)) {
		all = slices.DeleteFunc(all, func(e string) bool { return strings.HasPrefix(e, rule+"=") })
		all = append(all, rule+"="+fmt.Sprint(keys[rule]))
	}
	for i, e := range all {
		all[i] = strconv.Quote(printable(brief(e)))
	}
	return "policy.builtin.acp=[" + strings.Join(all, ", ") + "]"
}

// PolicyRule is a rule of the person's.
type PolicyRule struct {
	Name       string   `toml:"name"`
	Effect     string   `toml:"effect" oneof:"allow ask deny"`
	Argv       []string `toml:"argv"`       // how the command begins
	Has        []string `toml:"has"`        // words that must come somewhere after that
	Principals []string `toml:"principals"` // none means all agents
	Doors      []string `toml:"doors"`      // none means all
	Reason     string   `toml:"reason"`
	Match      []string `toml:"match"`     // lines that the rule must match
	NotMatch   []string `toml:"not_match"` // and that it must not
}

// PolicyIdentity applies to the principals that Name matches. Zero values mean the values
// of [policy] and [policy.limits].
type PolicyIdentity struct {
	Name              string   `toml:"name"` // "agent:cursor", "agent:*"
	Default           string   `toml:"default" oneof:"allow ask deny"`
	Roots             []string `toml:"roots"` // directories in which commands may start; none means any
	SpawnsPerMinute   int      `toml:"spawns_per_minute" range:"0..10000"`
	Background        int      `toml:"background" range:"0..10000"`
	CommandsPerMinute int      `toml:"commands_per_minute" range:"0..10000"`
	Commands          int      `toml:"commands" range:"0..10000"`
	// Typing decides whether text that they type into their shells is judged.
	Typing string `toml:"typing" oneof:"judged free"`
	// Sandbox confines the commands' reach: their directory, Writable, Readable and
	// Sockets, and the network unless it is none.
	Sandbox  string   `toml:"sandbox" oneof:"none auto wall landlock seatbelt"`
	Writable []string `toml:"writable"`
	Readable []string `toml:"readable"`
	Sockets  []string `toml:"sockets"`
	Network  string   `toml:"network" oneof:"shared none"`
}

// agentMarkers are variables that agents set for their commands. A daemon started by an
// agent would pass them on to all other programs.
var agentMarkers = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED",
	"CURSOR_AGENT", "CURSOR_TRACE_ID", "GEMINI_CLI", "OPENCODE", "AI_AGENT"}

func defaultPolicy() Policy {
	builtin := PolicyBuiltin{
		Commands: "deny", Patterns: "deny", Substitution: "deny", Unparsed: "ask", Dynamic: "ask", Code: "ask", Script: "ask",
		Interactive: "ask", Options: "ask", Destructive: "ask", Elevation: "ask", Environment: "ask", Files: "ask", Tether: "deny",
		ACP: []string{"commands=ask", "patterns=ask", "substitution=allow", "code=allow", "script=allow", "interactive=allow"},
	}
	return Policy{
		HideEnv: slices.Clone(agentMarkers), BlockList: "parsed", Default: "allow", AskTimeout: Duration(5 * time.Minute), AskWait: Duration(45 * time.Second), Notify: true, AuditBytes: 8 << 20,
		Limits:  PolicyLimits{SpawnsPerMinute: 3, Background: 5, BackgroundTotal: 20, CommandsPerMinute: 120, Commands: 32, Processes: 4096, Questions: 3},
		Builtin: builtin,
	}
}
