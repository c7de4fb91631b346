package proc

import (
	"slices"
	"strings"
)

// VendorMark is a variable that an agent sets for the programs that it runs, to any value
// but the empty one.
type VendorMark struct {
	Var   string
	Agent string // the agent that sets it; "" if several do, and the value says which
}

// VendorMarks are known marks of agents, besides AgentVar.
func VendorMarks() []VendorMark {
	return []VendorMark{
		{"CLAUDECODE", "claude"}, {"CODEX_THREAD_ID", "codex"}, {"GEMINI_CLI", "gemini"}, {"OPENCODE", "opencode"}, {"QWEN_CODE", "qwen"},
		{"COPILOT_CLI", "copilot"}, {"CURSOR_AGENT", "cursor-agent"}, {"GOOSE_TERMINAL", "goose"}, {"AUGMENT_AGENT", "auggie"},
		{"AI_AGENT", ""}, // https://github.com/vercel/vercel/tree/main/packages/detect-agent: a name, perhaps with a version
	}
}

// DevServerMark is what tether sets for dev servers that print errors of the page only
// with such a variable. It marks no agent.
const DevServerMark = "AI_AGENT=tether"

// vendorMark reports whether an entry of an environment is a known mark of an agent.
func vendorMark(entry string) bool {
	if entry == DevServerMark {
		return false
	}
	name, _, _ := strings.Cut(entry, "=")
	return slices.ContainsFunc(VendorMarks(), func(m VendorMark) bool { return m.Var == name })
}

// WithoutVendorMarks returns env without VendorMarks.
func WithoutVendorMarks(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), vendorMark)
}
