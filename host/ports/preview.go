package ports

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"tether/ahp"
	"tether/host/preview"
	"tether/host/rights"
)

// A preview is a lent port in the browser of a person who sees the terminal, or of a
// guest with a link for this port. Package preview serves it.

// Lending is a lent port of a terminal.
type Lending struct {
	ahp.LentPort
	URI      string
	Terminal string // its name for people
	// Client and ID are those of the machine and of the terminal, the same at all nodes.
	// A terminal keeps its id while its machine is away, and gets another client's never.
	Client, ID string
}

// Label returns the label of a lending's preview.
func (l *Lending) Label(of *preview.Previews) string {
	return of.Label(int(l.Port), l.Client, l.ID, strconv.FormatInt(l.SinceMs, 10))
}

// Label returns the terminal and the label of the first lending of a port that is wanted,
// "" if there is none.
func (p *Ports) Label(of *preview.Previews, port int, wanted func(*Lending) bool) (uri, label string) {
	for _, l := range p.opts.Terminals.Lendings(port) {
		if wanted(&l) {
			return l.URI, l.Label(of)
		}
	}
	return "", ""
}

// Problems of a visitor who may see previews.
var (
	// ErrPreviewUnseen: the visitor does not see the terminal.
	ErrPreviewUnseen = &preview.Problem{Status: http.StatusForbidden, Text: "You may not see this terminal any more.", Lasts: true}

	errPreviewOver = &preview.Problem{Status: http.StatusNotFound, Text: "This port is not lent any more, or the machine has not come back yet."}
	errPreviewAway = &preview.Problem{Status: http.StatusServiceUnavailable, Text: "The machine is away: its link to the host is cut."}
	errPreviewOld  = &preview.Problem{Status: http.StatusNotImplemented, Text: "The machine's tether is too old for previews.", Lasts: true}
)

// Preview returns the lent port with a label for a visitor, for preview.Options.Find.
func (p *Ports) Preview(of *preview.Previews, visitor rights.Principal, label string) (*preview.Port, error) {
	for _, l := range p.opts.Terminals.Lendings(preview.PortOf(label)) {
		if l.Label(of) != label {
			continue
		}
		way, err := p.Way(visitor, l.URI, int(l.Port))
		if err != nil {
			return nil, problem(err)
		}
		return &preview.Port{Number: int(l.Port), Write: l.Write, Name: l.Terminal, Begin: func(ctx context.Context) (preview.Request, error) {
			q, err := way.Begin(ctx)
			if err != nil {
				return nil, problem(err)
			}
			return previewed{q}, nil
		}}, nil
	}
	return nil, errPreviewOver
}

// previewed is a Request whose errors are for people.
type previewed struct{ *Request }

// RoundTrip implements http.RoundTripper.
func (q previewed) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := q.Request.RoundTrip(r)
	if err != nil {
		return nil, problem(err)
	}
	return a, nil
}

// problem says for people what is wrong with the way to a port.
func problem(err error) error {
	switch {
	case errors.Is(err, ErrUnseen):
		return ErrPreviewUnseen
	case errors.Is(err, ErrNotLent):
		return errPreviewOver
	case errors.Is(err, ErrAway):
		return errPreviewAway
	case errors.Is(err, ErrOld):
		return errPreviewOld
	}
	return err
}
