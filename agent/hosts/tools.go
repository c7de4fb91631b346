package hosts

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/agent/toolcall"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/platform/dirs"
)

// Tools are this machine's tools as the sessions of one host get them.
type Tools struct {
	Definitions []ahp.ToolDefinition
	Run         func(context.Context, toolcall.Call) toolcall.Answer // see toolcall.Options
	Ended       func(toolcall.Record)
	// Runs answers the host's questions about earlier runs; nil: none are kept. See
	// uplink.Options.
	Runs func(context.Context, uplink.Asked) ahp.RunsResult
	// Ports answers the host's requests for lent ports. See uplink.Options.
	Ports func(http.ResponseWriter, *http.Request, term.ID)
}

// partWithin is how long the end of a link waits for its tools to be withdrawn.
const partWithin = time.Second

// newDesk returns the desk for the calls that come from a host.
func (p *Paired) newDesk(h host, t Tools) *toolcall.Desk {
	d := toolcall.New(toolcall.Options{
		ClientID: h.ClientID, Machine: p.opts.Machine, Tools: t.Definitions, Book: callsPath(p.opts.Dirs, h), Logger: p.opts.Logger, Parting: p.opts.Timeout,
		Run: t.Run, Ended: t.Ended,
	})
	if h.ClientTools && p.opts.Uplink.ClientTools {
		d.On()
	}
	return d
}

// switchTools switches a host's tools on or off, as the stored pairing says.
func (p *Paired) switchTools(h host) {
	r := p.links.find(h.Name)
	what := "off"
	if h.ClientTools {
		what = "on"
	}
	switch {
	case r == nil:
	case h.ClientTools:
		r.desk.On()
	default:
		r.toolsOff(p.atMost(partWithin))
	}
	p.opts.Audit(policy.Event{Type: policy.EventTools, Actor: term.User, Host: h.Name, Detail: what})
	p.opts.Logger.Info().Str("host", h.Name).Str("tools", what).Msg("tools for sessions at a host")
}

// toolsOff withdraws the tools offered to the sessions of the host with that name.
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

// toolsStatus returns the current state of a host's tools.
func (p *Paired) toolsStatus(h host) localapi.HostTools {
	r := p.links.find(h.Name)
	if r == nil {
		return localapi.HostTools{On: h.ClientTools}
	}
	s := r.desk.Status()
	return localapi.HostTools{On: s.On, Sessions: s.Sessions, Running: s.Running, Calls: s.Ended, Refused: s.Refused, Problem: s.Problem}
}

// callsPath returns the path of the file that records which calls of a host have begun.
func callsPath(d dirs.Dirs, h host) string {
	return filepath.Join(d.State, "calls", h.ClientID+".json")
}

// forgetCalls deletes the record of a host's tool calls.
func (p *Paired) forgetCalls(h host) {
	if err := os.Remove(callsPath(p.opts.Dirs, h)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.opts.Logger.Warn().Err(err).Str("host", h.Name).Msg("its recorded calls stay")
	}
}
