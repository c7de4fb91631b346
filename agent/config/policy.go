package config

import (
	"slices"
	"time"
)

// Policy says what agents may run. See docs/POLICY.md.
type Policy struct {
	// BlockList is how the built-in rules read a command: its words and those
	// of every command in it, or in addition any text that looks like one.
	BlockList string `toml:"block_list" oneof:"parsed literal off"`
	// Default is what becomes of an agent's command that no rule speaks of.
	Default string `toml:"default" oneof:"allow ask deny"`
	// AskTimeout is how long a question waits; then it is denied.
	AskTimeout Duration `toml:"ask_timeout" range:"1s..1h"`
	// AuditBytes bounds one file of the audit log, of which there are four.
	AuditBytes Size `toml:"audit_bytes" range:"64KiB..1GiB"`
	// HideEnv names variables of a login that agents' commands do not get.
	HideEnv    []string         `toml:"hide_env"`
	Limits     PolicyLimits     `toml:"limits"`
	Builtin    PolicyBuiltin    `toml:"builtin"` // at all doors but ACP
	ACP        PolicyBuiltin    `toml:"acp"`
	Rules      []PolicyRule     `toml:"rules"`
	Principals []PolicyIdentity `toml:"principals"`
}

// PolicyLimits bounds what one agent starts.
type PolicyLimits struct {
	// SpawnsPerMinute and Background are about terminals in the background,
	// CommandsPerMinute and Commands about the others.
	SpawnsPerMinute   int `toml:"spawns_per_minute" range:"1..10000"`
	Background        int `toml:"background" range:"1..10000"`
	CommandsPerMinute int `toml:"commands_per_minute" range:"1..10000"`
	Commands          int `toml:"commands" range:"1..10000"`
	// Questions bounds those of one agent that wait at the same time.
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
	Destructive  string `toml:"destructive" oneof:"allow ask deny"`
	Elevation    string `toml:"elevation" oneof:"allow ask deny"`
	Environment  string `toml:"environment" oneof:"allow ask deny"`
	Files        string `toml:"files" oneof:"allow ask deny"`
	Tether       string `toml:"tether" oneof:"allow ask deny"`
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

// PolicyIdentity is about the principals that Name matches. Zero values mean
// what [policy] and [policy.limits] say.
type PolicyIdentity struct {
	Name              string   `toml:"name"` // "agent:cursor", "agent:*"
	Default           string   `toml:"default" oneof:"allow ask deny"`
	Roots             []string `toml:"roots"` // directories in which commands may start; none means any
	SpawnsPerMinute   int      `toml:"spawns_per_minute" range:"0..10000"`
	Background        int      `toml:"background" range:"0..10000"`
	CommandsPerMinute int      `toml:"commands_per_minute" range:"0..10000"`
	Commands          int      `toml:"commands" range:"0..10000"`
	// Sandbox confines what commands can write to their directory, a place for
	// temporary files and Writable.
	Sandbox  string   `toml:"sandbox" oneof:"none auto landlock bwrap"`
	Writable []string `toml:"writable"`
}

// agentMarkers are set by agents for what they run. A daemon that was started
// by one would hand them on to all others.
var agentMarkers = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED",
	"CURSOR_AGENT", "CURSOR_TRACE_ID", "GEMINI_CLI", "OPENCODE", "AI_AGENT"}

func defaultPolicy() Policy {
	builtin := PolicyBuiltin{
		Commands: "deny", Patterns: "deny", Substitution: "deny", Unparsed: "ask", Dynamic: "ask", Code: "ask", Script: "ask",
		Interactive: "ask", Destructive: "ask", Elevation: "ask", Environment: "ask", Files: "ask", Tether: "deny",
	}
	acp := builtin
	acp.Commands, acp.Patterns, acp.Substitution = "ask", "ask", "allow"
	acp.Code, acp.Script, acp.Interactive = "allow", "allow", "allow"
	return Policy{
		HideEnv: slices.Clone(agentMarkers), BlockList: "parsed", Default: "allow", AskTimeout: Duration(45 * time.Second), AuditBytes: 8 << 20,
		Limits:  PolicyLimits{SpawnsPerMinute: 3, Background: 5, CommandsPerMinute: 120, Commands: 32, Questions: 3},
		Builtin: builtin, ACP: acp,
	}
}
