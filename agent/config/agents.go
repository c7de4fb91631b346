package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Agents controls the view of this machine's agents.
type Agents struct {
	// Redact shows this machine's agents terminals as hosts see them, with the redaction
	// of [Lend].
	Redact bool `toml:"redact"`
	// Unseen says what agents are told of listening programs of this user that are in no
	// terminal.
	Unseen     string          `toml:"unseen" oneof:"ports full off"`
	Principals []AgentIdentity `toml:"principals"`
}

// AgentIdentity holds settings for the principals that Name matches. The first entry that
// matches counts.
type AgentIdentity struct {
	Name   string `toml:"name"` // "agent:cursor", "agent:*"
	Redact string `toml:"redact" oneof:"on off"`
}

// The words of Agents.Unseen.
const (
	UnseenPorts = "ports" // port and program, and the directory at or below one of a terminal that the agent sees
	UnseenFull  = "full"  // every directory
	UnseenOff   = "off"   // nothing
)

// The words of AgentIdentity.Redact.
const (
	RedactOn  = "on"
	RedactOff = "off"
)

// problems returns the faults of the values.
func (a *Agents) problems() []Problem {
	var all []Problem
	for i, p := range a.Principals {
		at := "agents.principals." + strconv.Itoa(i)
		if !strings.HasPrefix(p.Name, "agent:") || p.Name == "agent:" {
			all = append(all, Problem{Key: at + ".name", Text: fmt.Sprintf("%s must be agent:NAME, where * stands for any text", shown(p.Name))})
		}
		if p.Redact == "" {
			all = append(all, Problem{Key: at + ".redact", Text: "each entry needs one: on or off"})
		}
	}
	return all
}

// MCP holds settings for the terminals that agents start in the background through MCP.
// [PolicyLimits] bounds how many they may start.
type MCP struct {
	// IdleTimeout is how long such a terminal may be without output and input before it
	// is ended.
	IdleTimeout Duration `toml:"idle_timeout" range:"10s..720h"`
}
