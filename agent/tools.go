package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tether/agent/local"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/agent/toolcall"
	"tether/agenttools"
	"tether/ahp"
	"tether/platform/dirs"
)

// offered are the tools that agents at hosts get, of those that agents here have:
// only output goes to hosts, so nothing is typed, and nothing is made the
// person's.
var offered = []string{"list_terminals", "read_terminal", "wait_terminal", "spawn_background_terminal", "kill_terminal"}

// aboutTools begins each description.
const aboutTools = "Of a person's machine; only terminals that it lends to this host are there. "

const (
	// showWithin is how long the answer to a call that has started a terminal
	// waits for the host to know it.
	showWithin = 5 * time.Second
	// partWithin is how long the end of a link waits for its tools to be
	// withdrawn.
	partWithin = time.Second
)

// startLinks links to all hosts. The calls of their sessions are the server's to
// carry out.
func (a *Agent) startLinks(server *local.Server) {
	a.links.desk = func(h host) *toolcall.Desk { return a.newDesk(server, h) }
	for _, h := range a.hosts.list() {
		a.links.start(h, a.hosts.endpoint(h))
	}
}

// newDesk returns the desk for the calls that come from a host.
func (a *Agent) newDesk(server *local.Server, h host) *toolcall.Desk {
	d := toolcall.New(toolcall.Options{
		ClientID: h.ClientID, Machine: machineName(), Tools: definitions(server, h.Name), Book: callsPath(a.cfg.Dirs, h), Logger: &a.log, Parting: a.cfg.Patience,
		Run:   func(ctx context.Context, c toolcall.Call) toolcall.Answer { return a.runTool(ctx, server, h.Name, c) },
		Ended: func(r toolcall.Record) { a.auditCall(h.Name, r) },
	})
	if h.ClientTools && a.settings.Uplink.ClientTools {
		d.On()
	}
	return d
}

// definitions are what a host's sessions are told of the tools.
func definitions(server *local.Server, host string) []ahp.ToolDefinition {
	tools := server.ToolsAt(host, "", "")
	defer tools.Close()
	var all []ahp.ToolDefinition
	for _, t := range tools.Tools() {
		if !slices.Contains(offered, t.Name) {
			continue
		}
		annotations := json.RawMessage(fmt.Sprintf(`{"readOnlyHint":%t}`, t.ReadOnly))
		all = append(all, ahp.ToolDefinition{Name: t.Name, Title: t.Title, Description: aboutTools + t.Description, InputSchema: t.InputSchema, Annotations: annotations})
	}
	return all
}

// runTool carries out a call in the name of an agent at the host.
func (a *Agent) runTool(ctx context.Context, server *local.Server, host string, c toolcall.Call) toolcall.Answer {
	tools := server.ToolsAt(host, c.Session, c.Agent)
	defer tools.Close()
	r, err := tools.Call(ctx, c.Tool, c.Arguments, nil)
	var text string
	if err == nil {
		text, err = r.Text()
	}
	if err != nil {
		return toolcall.Answer{Failed: true, Text: a.shown.Redact(err.Error())}
	}
	return toolcall.Answer{Text: text, Terminal: a.links.reference(ctx, host, r.Answer)}
}

// reference is the terminal that a tool's answer is about, as the host knows it;
// nil if there is none. One that has just been started may take a moment.
func (l *links) reference(ctx context.Context, host string, answer any) *ahp.TerminalBlock {
	within, id, exit := time.Duration(0), "", (*agenttools.ExitFields)(nil)
	switch a := answer.(type) {
	case agenttools.Spawned:
		within, id, exit = l.atMost(showWithin), a.ID, a.ExitFields
	case *agenttools.ReadAnswer:
		id, exit = a.TerminalID, a.ExitFields
	case *agenttools.WaitAnswer:
		id, exit = a.TerminalID, a.ExitFields
	}
	r := l.find(host)
	if r == nil || id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	uri, title, ok := r.link.Announced(ctx, term.ID(id))
	if !ok {
		return nil
	}
	block := ahp.TerminalContent(uri, title, true).Terminal
	if exit != nil {
		code := int64(exit.ExitCode)
		block.Result = &ahp.TerminalResult{ExitCode: &code}
	}
	return block
}

// switchTools does what has been decided of a host's tools.
func (a *Agent) switchTools(h host) {
	r := a.links.find(h.Name)
	what := "off"
	if h.ClientTools {
		what = "on"
	}
	switch {
	case r == nil:
	case h.ClientTools:
		r.desk.On()
	default:
		r.toolsOff(a.atMost(partWithin))
	}
	a.policy.Audit(policy.Event{Type: policy.EventTools, Actor: term.User, Host: h.Name, Detail: what})
	a.log.Info().Str("host", h.Name).Str("tools", what).Msg("tools for sessions at a host")
}

// toolsOff withdraws what the sessions of the host of that name were offered.
func (l *links) toolsOff(name string) {
	if r := l.find(name); r != nil {
		r.toolsOff(l.atMost(partWithin))
	}
}

// toolsOff withdraws the tools, as far as the host can be told within that time.
func (r *running) toolsOff(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	r.desk.Off(ctx)
}

// toolsStatus is what becomes of a host's tools now.
func (a *Agent) toolsStatus(h host) local.HostTools {
	r := a.links.find(h.Name)
	if r == nil {
		return local.HostTools{On: h.ClientTools}
	}
	s := r.desk.Status()
	return local.HostTools{On: s.On, Sessions: s.Sessions, Running: s.Running, Calls: s.Ended, Refused: s.Refused, Problem: s.Problem}
}

// auditCall notes what became of a call. What it was called with is not noted,
// but a command that it starts is, as every start.
func (a *Agent) auditCall(host string, r toolcall.Record) {
	ev := policy.Event{Type: policy.EventCall, Actor: term.AgentAt(host, r.Session), Named: r.Agent, Door: policy.DoorAHP, Host: host}
	how := "done"
	switch {
	case r.Refused:
		how = "not carried out"
		ev.Decision = policy.Decision{Effect: policy.Deny, Rule: "tools", Reason: "it could not be taken, or had begun before"}
	case r.Void:
		how = "given up by the host"
	case r.Failed:
		how = "failed"
	}
	ev.Detail = fmt.Sprintf("%s %s after %s", r.Tool, how, r.Took.Round(time.Millisecond))
	a.policy.Audit(ev)
}

// callsPath is where it is noted which calls of a host have begun.
func callsPath(d dirs.Dirs, h host) string {
	return filepath.Join(d.State, "calls", h.ClientID+".json")
}

// forgetCalls removes what was noted of a host's calls.
func (a *Agent) forgetCalls(h host) {
	if err := os.Remove(callsPath(a.cfg.Dirs, h)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn().Err(err).Str("host", h.Name).Msg("what was noted of its calls stays")
	}
}
