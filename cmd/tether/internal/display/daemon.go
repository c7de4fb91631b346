package display

import (
	"fmt"
	"strings"
	"time"

	"tether/agent/localapi"
)

// LeftRunning says that n terminals run without a daemon, and the remedy.
func LeftRunning(n int) string {
	return Terminals(n, "is running", "are running") + " without a daemon; " + LeftRemedy(n)
}

// LeftRemedy returns the remedy for n terminals that run without a daemon.
func LeftRemedy(n int) string {
	return "tether daemon --background resumes " + them(n) + ", tether stop ends " + them(n)
}

// Kept says that a stopped daemon has left n terminals running.
func Kept(n int) string {
	if n == 0 {
		return "no terminals were running"
	}
	return Terminals(n, "kept", "kept") + "; the next daemon resumes " + them(n)
}

// them returns the pronoun for n terminals.
func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// Terminals returns a number of terminals with a verb: one for a single terminal, many
// otherwise.
func Terminals(n int, one, many string) string {
	if n == 1 {
		return "1 terminal " + one
	}
	return fmt.Sprintf("%d terminals %s", n, many)
}

// Root describes how a daemon of root treats its terminals.
func Root(r localapi.Root) string {
	if r.Lends {
		return "the daemon runs as root and lends terminals as configured (lend.as_root = true)"
	}
	return "the daemon runs as root and lends only terminals that you name (--host or tether lend)"
}

// Sandbox describes how agents' commands are confined.
func Sandbox(s localapi.SandboxStatus) string {
	switch {
	case s.Error != "":
		return "unavailable, so agents with a sandbox cannot run commands: " + Printable(s.Error, 200)
	case s.Wall && s.Abstract:
		return "wall (namespaces); abstract sockets stay open on this kernel, unless network = \"none\""
	case s.Wall:
		return "wall (namespaces)"
	default:
		return "fence (" + s.Kind + "): protects files from changes, not from reading; sockets stay open"
	}
}

// skewWarn is the difference between clocks above which certificates and tokens may fail.
const skewWarn = 30 * time.Second

// Skew describes the difference between a host's clock and this machine's, positive if
// the host's is ahead. It returns "" if that is harmless.
func Skew(skew time.Duration) string {
	if skew.Abs() <= skewWarn {
		return ""
	}
	return fmt.Sprintf("its clock is %s %s this machine's", skew.Abs(), map[bool]string{true: "ahead of", false: "behind"}[skew > 0])
}

// Connections lists who has how many connections to the daemon, and how many an agent may
// have.
func Connections(all []localapi.Connections) string {
	var parts []string
	for _, c := range all {
		name, agent := strings.CutPrefix(c.Of, "agent ")
		switch {
		case agent:
			parts = append(parts, fmt.Sprintf("agent %s %d of %d", Printable(name, 64), c.Open, c.Max))
		case c.Of == "user":
			parts = append(parts, fmt.Sprintf("you %d", c.Open))
		default:
			parts = append(parts, fmt.Sprintf("%s %d", Printable(c.Of, 64), c.Open))
		}
	}
	return strings.Join(parts, ", ")
}
