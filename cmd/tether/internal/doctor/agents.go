package doctor

import (
	"context"
	"strings"
)

// checkAgents reports which of the installed agents have tether's MCP server in their configuration.
func checkAgents(_ context.Context, m *machine) []Check {
	c := Check{Name: "agents", Result: OK, Doc: "docs/MCP.md"}
	know, lack, broken := m.Agents()
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
		c.Result, c.Reason = Skip, "no known agent is installed"
	case len(broken) > 0:
		c.Result, c.Fix = Warn, "correct the named file: its agent cannot read it either"
	}
	return []Check{c}
}
