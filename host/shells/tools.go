package shells

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/mcp"
)

// Guide is for models that may run commands at the host.
const Guide = `run_command, write_terminal and kill_terminal are about shells of this host itself that belong to your session (owner "agent" in list_terminals). run_command starts one and runs a command line in it, or in one that you already have; with "background": true a server runs on, and wait_terminal waits for its output. People at the host see these shells and may take one over: then only they can type until they give it back.`

// Bounds of agents' shells.
const (
	maxShells   = 8    // that one session holds, running or exited
	maxLine     = 4000 // bytes of a command: a terminal whose shell does not edit lines takes no more than 4095
	maxInput    = 64 << 10
	defaultWait = 30 * time.Second
	maxWait     = 10 * time.Minute
	// quiet is how long a shell that does not report its commands must be silent for
	// a command to count as done.
	quiet = 2 * time.Second
)

var (
	errNoAgentSession = errors.New("you have no session at this host: it was just disposed of, or there are too many; try again")
	errShells         = fmt.Errorf("you have %d shells, the maximum: end one with kill_terminal, or use one with terminalId", maxShells)
	errCallEnded      = errors.New("the call was cancelled, or its session was disposed of; list_terminals shows what is left")
)

// Tools are the tools by which agents use shells of the host, each agent in its session,
// so that viewers of its chat can follow the calls.
type Tools struct {
	Agents *sessions.Agents
	// View returns the terminals as a principal sees them.
	View func(rights.Principal) agenttools.Terminals
	// IDOf and URIOf translate names of terminals. URIOf returns "" if there is no such
	// terminal.
	IDOf, URIOf func(string) string
	// Audit writes a record.
	Audit func(kind string, p rights.Principal, ev rights.AuditEvent)
}

// tool is one of the tools.
type tool struct {
	name, title, description, schema string
	// prepare reads the arguments and returns the message for people, and the work.
	prepare func(args json.RawMessage) (message string, do work, err error)
}

// work carries out a call; its answer is encoded as JSON.
type work func(ctx context.Context, c *call) (answer any, err error)

// call is a call under way.
type call struct {
	*sessions.Call
	tools *Tools
}

// For returns the tools for a principal: none if the role does not allow them.
func (x *Tools) For(p rights.Principal) (extras []mcp.Extra) {
	if !p.May(rights.Commands) {
		return nil
	}
	for _, t := range []tool{runTool, writeTool, killTool} {
		extras = append(extras, mcp.Extra{
			Tool: agenttools.Tool{Name: t.name, Title: t.title, Description: t.description, InputSchema: json.RawMessage(t.schema)},
			Call: func(ctx context.Context, args json.RawMessage) (string, error) {
				return x.call(ctx, p, t, args)
			},
		})
	}
	return extras
}

func (x *Tools) call(ctx context.Context, p rights.Principal, t tool, args json.RawMessage) (string, error) {
	message, do, err := t.prepare(args)
	if err != nil {
		return "", err
	}
	s := x.Agents.Caller(p)
	if s == nil {
		return "", errNoAgentSession
	}
	c, err := s.Begin(sessions.CallInfo{Name: t.name, Title: t.title, Message: message, Input: args, Agent: p.Name})
	if err != nil {
		return "", err
	}
	defer func() { _ = c.End(sessions.Failed("the tool ran into a bug")) }() // otherwise it has ended already
	x.Audit(rights.AuditCalled, p, rights.AuditEvent{Client: s.URI(), Detail: t.name})
	answer, err := do(ctx, &call{c, x})
	var text []byte
	if err == nil {
		text, err = json.Marshal(answer)
	}
	result := ahp.ToolResult{Success: true, PastTenseMessage: ahp.Text{Value: "Done: " + message}, Content: []ahp.ToolContent{ahp.TextContent(string(text))}}
	if err != nil {
		result = sessions.Failed(err.Error())
	}
	if c.End(result) != nil {
		err = errors.Join(err, errCallEnded)
	}
	if err != nil {
		return "", err
	}
	return string(text), nil
}

const shellIDSchema = `"terminalId":{"type":"string","description":"id or name of a shell that run_command started"}`

var runTool = tool{
	name: "run_command", title: "Run a command at this host",
	description: "Run a command line in a shell of this host and wait for its end: in a new shell, or in an idle shell of yours (terminalId). Answers with the reason that ended the wait, the exit code, the newest 8 KB of output, and a cursor for read_terminal. " +
		"Reasons: command (it has finished), timeout and background (it runs on in the background), detached (a person let it run on without you), exit (the shell has ended), idle (this shell does not report its commands, and printed nothing for 2 s). You may have 8 shells: end unneeded ones with kill_terminal.",
	schema: `{"type":"object","properties":{"command":{"type":"string","description":"one line for the shell, such as: npm run dev"},` +
		`"terminalId":{"type":"string","description":"run in this shell, which run_command started; default: a new shell"},` +
		`"cwd":{"type":"string","description":"absolute directory for a new shell; default: the home directory"},` +
		`"background":{"type":"boolean","description":"do not wait: for servers and watchers"},` +
		`"timeoutMs":{"type":"integer","minimum":1,"maximum":600000,"description":"wait at most this long, default 30000"}},` +
		`"required":["command"],"additionalProperties":false}`,
	prepare: func(args json.RawMessage) (string, work, error) {
		var in runArgs
		err := agenttools.Decode(args, &in)
		if err == nil {
			err = in.check()
		}
		return in.Command, in.run, err
	},
}

var writeTool = tool{
	name: "write_terminal", title: "Write to a shell at this host",
	description: "Type into a shell of this host that run_command started: answer a prompt, use a REPL, press Ctrl-C. Returns the cursor from before the input: read_terminal or wait_terminal with it as since show what came of it.",
	schema: `{"type":"object","properties":{` + shellIDSchema + `,"input":{"type":"string","description":"text, as typed; control characters are allowed, such as \\u0003 for Ctrl-C"},` +
		`"enter":{"type":"boolean","description":"press Enter after it; default false"}},"required":["terminalId","input"],"additionalProperties":false}`,
	prepare: func(args json.RawMessage) (string, work, error) {
		var in writeArgs
		err := agenttools.Decode(args, &in)
		if in.Enter {
			in.Input += "\r"
		}
		if n := len(in.Input); err == nil && (n == 0 || n > maxInput) {
			err = fmt.Errorf("input has %d bytes, it must be 1 to %d", n, maxInput)
		}
		return "Type into " + in.TerminalID, in.write, err
	},
}

var killTool = tool{
	name: "kill_terminal", title: "End a shell at this host",
	description: "End a shell that run_command started, with everything that runs in it, and remove it.",
	schema:      `{"type":"object","properties":{` + shellIDSchema + `},"required":["terminalId"],"additionalProperties":false}`,
	prepare: func(args json.RawMessage) (string, work, error) {
		var in shellID
		err := agenttools.Decode(args, &in)
		return "End " + in.TerminalID, in.kill, err
	},
}

// runArgs are the arguments of run_command.
type runArgs struct {
	Command    string `json:"command"`
	TerminalID string `json:"terminalId"`
	Cwd        string `json:"cwd"`
	Background bool   `json:"background"`
	TimeoutMs  *int64 `json:"timeoutMs"`
}

func (in *runArgs) check() error {
	switch {
	case strings.TrimSpace(in.Command) == "":
		return errors.New("command is missing")
	case len(in.Command) > maxLine:
		return fmt.Errorf("command has %d bytes, at most %d are allowed: put it into a file and run that", len(in.Command), maxLine)
	case strings.ContainsFunc(in.Command, unicode.IsControl):
		return errors.New("command must be one line without control characters: join commands by && or ; or put them into a file and run that")
	case in.TerminalID != "" && in.Cwd != "":
		return errors.New("cwd is only for a new shell: leave out terminalId, or begin the command with cd")
	case in.TimeoutMs != nil && (*in.TimeoutMs < 1 || *in.TimeoutMs > maxWait.Milliseconds()):
		return fmt.Errorf("timeoutMs %d is out of range, it must be 1 to %d", *in.TimeoutMs, maxWait.Milliseconds())
	}
	return nil
}

// timeout is how long the call waits.
func (in *runArgs) timeout() time.Duration {
	if in.TimeoutMs == nil {
		return defaultWait
	}
	return time.Duration(*in.TimeoutMs) * time.Millisecond
}

// shellID are the arguments that all others have, too.
type shellID struct {
	TerminalID string `json:"terminalId"`
}

// writeArgs are the arguments of write_terminal.
type writeArgs struct {
	shellID
	Input string `json:"input"`
	Enter bool   `json:"enter"`
}
