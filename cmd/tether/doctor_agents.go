package main

import (
	"context"
	"os"
	"strings"
)

// checkAgents reports which of the installed agents have tether's MCP server in their configuration.
func checkAgents(context.Context, *patient) []check {
	c := check{Name: "agents", Result: checkOK, Doc: "docs/MCP.md"}
	know, lack, broken := agentsHere()
	var parts []string
	for _, part := range []struct {
		text  string
		names []string
	}{{"configured for tether: ", know}, {"not configured for tether (tether setup agents does it): ", lack}, {"unknown: ", broken}} {
		if len(part.names) > 0 {
			parts = append(parts, part.text+strings.Join(part.names, ", "))
		}
	}
	c.Reason = strings.Join(parts, "; ")
	switch {
	case len(parts) == 0:
		c.Result, c.Reason = checkSkip, "no known agent is installed"
	case len(broken) > 0:
		c.Result, c.Fix = checkWarn, "correct the named file: its agent cannot read it either"
	}
	return []check{c}
}

// agentsHere returns the names of the installed agents: configured for tether, not configured for it, and unknown, with the reason.
func agentsHere() (know, lack, broken []string) {
	all, err := knownAgents()
	if err != nil {
		return nil, nil, nil // without a home directory there are none
	}
	home, _ := os.UserHomeDir() // knownAgents had it
	for _, k := range all {
		if !k.installed(home) {
			continue
		}
		switch knows, err := k.knows(); {
		case err != nil:
			broken = append(broken, k.name+" ("+k.file()+": "+err.Error()+")")
		case knows:
			know = append(know, k.name)
		default:
			lack = append(lack, k.name)
		}
	}
	return know, lack, broken
}
