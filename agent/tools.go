package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"tether/agent/hosts"
	"tether/agent/lentports"
	"tether/agent/local"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/agent/toolcall"
	"tether/agent/uplink"
	"tether/agenttools"
	"tether/ahp"
	"tether/internal/clip"
	"tether/vocab"
)

// offered are the tools for agents at hosts, a subset of those for agents here: only
// output goes to hosts, so they cannot type, nor make terminals the person's.
var offered = []string{"list_terminals", "read_terminal", "wait_terminal", "spawn_background_terminal", "kill_terminal"}

// aboutTools begins each description.
const aboutTools = "Of a person's machine; only terminals that it lends to this host are there. "

// showWithin is how long the answer to a call that has started a terminal waits for the
// host to know it.
const showWithin = 5 * time.Second

// toolsFor returns this machine's tools for the sessions of a host. The server carries
// out their calls.
func (a *Agent) toolsFor(server *local.Server, ports *lentports.Server, host string) hosts.Tools {
	t := hosts.Tools{
		Ports:       func(w http.ResponseWriter, r *http.Request, id term.ID) { ports.Serve(w, r, host, id) },
		Definitions: definitions(server, host),
		Run:         func(ctx context.Context, c toolcall.Call) toolcall.Answer { return a.runTool(ctx, server, host, c) },
		Ended:       func(r toolcall.Record) { a.auditCall(host, r) },
	}
	if a.runs != nil {
		t.Runs = func(ctx context.Context, q uplink.Asked) ahp.RunsResult {
			who := "" // the name by which the reader is granted most
			if len(q.Reader.Names) > 0 {
				who = q.Reader.Names[0]
			}
			a.watched.asked(host, q.Terminal, who)
			r := server.RunsAt(ctx, host, q.RunsParams, q.Terminal)
			r.Error = a.shown.Redact(r.Error)
			return r
		}
	}
	return t
}

// newPorts returns what answers the requests of hosts for lent ports.
func (a *Agent) newPorts(server *local.Server) *lentports.Server {
	return lentports.New(lentports.Options{Terminals: a.pool.As, Checkouts: &a.checkouts, Fetched: a.watched.fetched, Logger: &a.log,
		Fetch: func(ctx context.Context, host string, id term.ID, port vocab.LentPort, q ahp.FetchParams) ahp.FetchResult {
			r := server.FetchAt(ctx, host, id, port, q)
			r.Error = clip.Text(a.shown.Redact(r.Error), ahp.MaxFetchError)
			return r
		}})
}

// definitions returns the descriptions of the tools for a host's sessions.
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

// runTool carries out a call on behalf of an agent at the host.
func (a *Agent) runTool(ctx context.Context, server *local.Server, host string, c toolcall.Call) toolcall.Answer {
	tools := server.ToolsAt(host, c.Session, c.Agent)
	defer tools.Close()
	r, err := tools.Call(ctx, c.Tool, c.Arguments, agenttools.Caller{})
	var text string
	if err == nil {
		text, err = r.Text()
	}
	if err != nil {
		return toolcall.Answer{Failed: true, Text: a.shown.Redact(err.Error())}
	}
	return toolcall.Answer{Text: text, Terminal: a.reference(ctx, host, r.Answer)}
}

// reference returns the terminal of a tool's answer as the host knows it; nil if there is
// none. For a terminal that was just started it waits up to showWithin until the host
// knows it.
func (a *Agent) reference(ctx context.Context, host string, answer any) *ahp.TerminalBlock {
	within, id, exit := time.Duration(0), "", (*agenttools.ExitFields)(nil)
	switch about := answer.(type) {
	case agenttools.Spawned:
		within, id, exit = a.atMost(showWithin), about.ID, about.ExitFields
	case *agenttools.ReadAnswer:
		id, exit = about.TerminalID, about.ExitFields
	case *agenttools.WaitAnswer:
		id, exit = about.TerminalID, about.ExitFields
	}
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	uri, title, ok := a.hosts.Announced(ctx, host, term.ID(id))
	if !ok {
		return nil
	}
	block := ahp.TerminalContent(uri, title, true).Terminal
	if exit != nil {
		block.Result = &ahp.TerminalResult{ExitCode: new(int64(exit.ExitCode))}
	}
	return block
}

// auditCall records the end of a call. Its arguments are not recorded, but a command that
// it starts is, like every start.
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
