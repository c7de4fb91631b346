package local

import (
	"tether/agent/outward"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/mcp"
)

// ToolsAt returns the tools of agents here for one that works in a session of
// a paired host, under the same policy. What it starts is lent to the host at
// once, it sees what is lent there and nothing else, and all it is told has
// passed redaction. Nothing of this machine's loopback interface is offered. The
// caller must Close the server, which ends what its calls wait for; the calls
// also end with this one. named is the agent's name as the host says it, for people
// to read.
func (s *Server) ToolsAt(host, session, named string) *mcp.Server {
	access := s.opts.Access(term.AgentAt(host, session))
	return mcp.New(mcp.Options{Terminals: &agentTerminals{server: s, access: access, door: policy.DoorAHP, host: host, named: named}, Version: s.opts.Version, Machine: s.opts.Machine, Bug: s.toolBug})
}

// redactInfo masks in a terminal's description what its output masks, too.
func redactInfo(i *mcp.Info, rules *outward.Rules) {
	i.Cwd, i.Running = rules.Redact(i.Cwd), rules.Redact(i.Running)
	i.Name, i.Title = rules.Title(i.Name), rules.Title(i.Title)
	command := make([]string, len(i.Command))
	for n, arg := range i.Command {
		command[n] = rules.Redact(arg)
	}
	i.Command = command
}
