package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tether/agent/devserver"
	"tether/agent/fetch"
	"tether/agent/term"
	"tether/agenttools"
	"tether/ahp"
	"tether/vocab"
)

// lentServer is the server on a port that is lent to a host, with its terminal as the
// host sees it.
type lentServer struct {
	agenttools.Fetcher
	host  string
	h     term.Handle
	write bool
}

// Fetch implements agenttools.Fetcher.
func (l lentServer) Fetch(ctx context.Context, id string, r fetch.Request) (*fetch.Page, error) {
	r.Write = l.write
	page, err := l.Fetcher.Fetch(ctx, id, r)
	if e, ok := errors.AsType[*devserver.Error](err); ok && e.Kind == devserver.Foreign {
		l.h.ClosePort(l.host, r.Port, devserver.ChangedHands)
	}
	return page, err
}

// FetchAt carries out a call of fetch_page for a reader at a host, on a port that is lent
// there. The answer is masked as all that the host sees.
func (s *Server) FetchAt(ctx context.Context, host string, id term.ID, port vocab.LentPort, q ahp.FetchParams) (a ahp.FetchResult) {
	access := s.opts.Access(term.Host(host))
	h, err := access.Terminal(id)
	if err != nil {
		return ahp.FetchResult{Error: err.Error()}
	}
	terminals := lentServer{&agentTerminals{server: s, access: access, masked: true}, host, h, port.Write}
	tools := agenttools.New(agenttools.Options{Terminals: terminals, Machine: s.opts.Machine, Bug: s.toolBug, Matchers: s.opts.Matchers})
	defer tools.Close()
	args := map[string]json.RawMessage{}
	err = ahp.DecodeParams(q.Arguments, &args)
	if err != nil || args == nil {
		return ahp.FetchResult{Error: "the arguments are no object"}
	}
	args["terminalId"], args["port"] = fmt.Appendf(nil, "%q", id), fmt.Append(nil, port.Port) // whatever the host says
	with, err := json.Marshal(args)
	if err != nil {
		return ahp.FetchResult{Error: err.Error()}
	}
	r, err := tools.Call(ctx, "fetch_page", with, agenttools.Caller{Shows: int(q.Shows)})
	if err == nil {
		a.Answer, err = json.Marshal(r.Answer)
	}
	if err != nil {
		return ahp.FetchResult{Error: err.Error()}
	}
	if r.Blob != nil {
		a.Blob = &ahp.FetchBlob{Type: r.Blob.Type, Data: r.Blob.Data}
	}
	return a
}
