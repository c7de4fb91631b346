package policy

import (
	"slices"
	"strings"

	"tether/agent/command"
)

// tetherReads are the verbs with which an agent reads in a terminal of its own what its
// tools show it, too. The daemon decides what that is: it knows in whose terminal the
// caller runs.
var tetherReads = []string{"diff", "events", "fetch", "ls", "ports", "problems", "read", "runs", "search", "verdict", "wait", "whoami"}

// onTether judges a command of tether's command line.
func (b builtin) onTether(c command.Command) []Decision {
	switch {
	case c.Name() != "tether", printsHelp(c):
		return nil
	case !readsTether(c):
		return []Decision{b.decide(ruleTether, "%s: of tether's command line agents may use %s, by that name, with words that are known before it runs, and without --raw",
			brief(c.String()), strings.Join(tetherReads, ", "))}
	}
	return nil
}

// printsHelp reports whether the command prints nothing but tether's version or help.
func printsHelp(c command.Command) bool {
	return len(c.Words) == 2 && c.Words[1].Fixed && slices.Contains([]string{"version", "--version", "help", "--help", "-h"}, c.Words[1].Text)
}

// readsTether reports whether the command is one of tetherReads, of the tether in PATH,
// run where the agent is known. Each option must be in the table of programs: a word that
// is known only when it runs may be another one.
func readsTether(c command.Command) bool {
	return !c.Apart && len(c.Words) > 1 && c.Words[0].Text == "tether" && slices.Contains(tetherReads, c.Words[1].Text) &&
		!slices.ContainsFunc(c.Words, func(w command.Word) bool { return !w.Fixed }) && c.Listed()
}

// onTetherCaller judges the circumstances in which a request uses tether's command line:
// whether the daemon that answers is this one, and knows the caller. An agent at a host
// sees less through its tools than the local door tells.
func (b builtin) onTetherCaller(r Request, read *command.Reading) []Decision {
	if r.Actor.At() != "" {
		return []Decision{b.decide(ruleTether, "agents at hosts may not use tether's command line")}
	}
	for _, c := range read.Commands {
		if c.Name() == "unset" {
			return []Decision{b.decide(ruleTether, "it unsets variables, by which tether finds its daemon, and runs tether")}
		}
	}
	names := slices.Clone(r.Env)
	for _, s := range read.Sets {
		names = append(names, s.Name)
	}
	for _, name := range names {
		if name, _, _ = strings.Cut(name, "="); findsDaemon(name) || loads(name) {
			return []Decision{b.decide(ruleTether, "it sets %s, by which another tether may run or another daemon may answer", brief(name))}
		}
	}
	return nil
}

// findsDaemon reports whether tether's directories depend on the variable.
func findsDaemon(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "XDG_") || slices.Contains([]string{"HOME", "APPDATA", "LOCALAPPDATA"}, name)
}
