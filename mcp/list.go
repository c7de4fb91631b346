package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/mcp/screen"
)

// metadata is a terminal in the words of the tools. A terminal that runs has
// the first six fields and no other.
type metadata struct {
	ID        string   `json:"id"`
	Cwd       string   `json:"cwd"`
	Owner     Owner    `json:"owner"`
	Visible   bool     `json:"visible"`
	CreatedAt int64    `json:"createdAt"`         // Unix time in ms
	Machine   string   `json:"machine,omitempty"` // with Name, where there are several machines
	Name      string   `json:"name,omitempty"`
	Command   []string `json:"command,omitempty"`
	Exited    bool     `json:"exited,omitempty"`
	*exitFields
}

// exitFields say how a terminal ended.
type exitFields struct {
	ExitCode int    `json:"exitCode"`
	Signal   string `json:"signal,omitempty"`
	Reason   string `json:"reason,omitempty"` // exited, killed or timeout
	ExitedAt int64  `json:"exitedAt"`
}

// details is what programs get beside.
type details struct {
	metadata
	Status  string `json:"status"` // running or exited
	Name    string `json:"name"`
	Title   string `json:"title"`
	Cols    int    `json:"cols"`
	Rows    int    `json:"rows"`
	Pid     int    `json:"pid,omitempty"`
	Running string `json:"running,omitempty"` // the command line that a shell runs now
	Cursor  int64  `json:"cursor"`            // offset of the end of the output
}

func metadataOf(i Info) metadata {
	m := metadata{ID: i.ID, Cwd: screen.Clean(i.Cwd), Owner: i.Owner, Visible: i.Visible, CreatedAt: millis(i.CreatedAt), exitFields: exitOf(i)}
	for _, arg := range i.Command {
		m.Command = append(m.Command, screen.Clean(arg))
	}
	if i.Machine != "" {
		m.Machine, m.Name = screen.Clean(i.Machine), screen.Clean(i.Name)
	}
	m.Exited = i.Exit != nil
	return m
}

func exitOf(i Info) *exitFields {
	if i.Exit == nil {
		return nil
	}
	return &exitFields{ExitCode: i.Exit.Code, Signal: i.Exit.Signal, Reason: i.Exit.Reason, ExitedAt: millis(i.Exit.At)}
}

func detailsOf(i Info) details {
	d := details{metadata: metadataOf(i), Status: "running", Name: screen.Clean(i.Name), Title: screen.Clean(i.Title), Cols: i.Cols, Rows: i.Rows,
		Pid: i.Pid, Running: screen.Clean(i.Running), Cursor: i.End}
	if i.Exit != nil {
		d.Status, d.Pid = "exited", 0
	}
	return d
}

func millis(t time.Time) int64 { return t.UnixMilli() }

// What list_terminals lists: for who has terminals of its own, and for who may only read.
const (
	listOwn  = "List all terminal sessions with metadata: the user's (owner \"user\") and your own background terminals (owner \"agent\")."
	listRead = "List the terminals that people's machines lend to this host (owner \"user\"), and shells of your own here if you have any (owner \"agent\"), with metadata. Names begin with the machine, such as laptop/dev-server."
	listExit = " Terminals that have exited stay listed and readable for a while."
)

func (s *Server) listTool() tool {
	about := listOwn
	if s.control == nil {
		about = listRead
	}
	return tool{
		name: "list_terminals", title: "List terminals",
		description: about + listExit,
		schema:      `{"type":"object","properties":{},"additionalProperties":false}`,
		hints:       sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: no()},
		long:        true,
		call: func(_ context.Context, c call) (result, error) {
			if err := c.decode(&struct{}{}); err != nil {
				return result{}, err
			}
			plain, all := []metadata{}, []details{}
			for _, i := range s.opts.Terminals.List() {
				plain, all = append(plain, metadataOf(i)), append(all, detailsOf(i))
			}
			return result{text: plain, structured: map[string]any{"terminals": all}, untrusted: true}, nil
		},
	}
}

// cleanCommand is a command without what its line should not hold.
func cleanCommand(c Command) Command {
	c.Line = screen.Clean(c.Line)
	return c
}
