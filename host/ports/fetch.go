package ports

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/rights"
	"tether/internal/clip"
	"tether/internal/jsonspan"
	"tether/screen"
)

// Agents fetch pages of lent ports: their machine does it, masks the page and what the
// terminal printed, and answers with both. Nothing of it is kept here.

const (
	fetchTime       = 45 * time.Second // bounds a call: a machine gives a server 30 s
	fetchesAtOnce   = 6                // calls of one principal, and calls to one machine
	maxFetchHeaders = 100              // header fields of an answer
	maxFetchText    = 1 << 20          // bytes of a body, and of what was printed
)

// fetchError is an error for the model.
type fetchError string

func (e fetchError) Error() string { return string(e) }

const (
	errManyFetches = fetchError("too many pages are being fetched at a time: try again")
	errBadFetch    = fetchError("the machine gave no usable answer")
)

// A Fetch is a call of the tool fetch_page by an agent at the host.
type Fetch struct {
	Agent   rights.Principal
	URI     string // of the lent terminal
	Machine string // client id of its machine
	Info    agenttools.Info
	Port    int // 0: the only one that is lent
	Args    json.RawMessage
	Shows   int // bytes of the answer that the agent gets
}

// Fetch has the machine carry out a call. Errors are for the model.
func (p *Ports) Fetch(ctx context.Context, f Fetch) (*agenttools.FetchAnswer, *agenttools.Blob, error) {
	port, err := choosePort(&f.Info, f.Port)
	if err != nil {
		return nil, nil, err
	}
	done, ok := p.fetches.Try("reader "+f.Agent.Key(), "machine "+f.Machine)
	if !ok {
		return nil, nil, errManyFetches
	}
	defer done()
	p.opts.Audit(rights.AuditCalled, f.Agent, f.URI, fmt.Sprintf("fetch_page, port %d", port))
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	w := &Way{of: p, p: f.Agent, uri: f.URI, port: port, call: ahp.CallFetch}
	r, err := w.fetch(ctx, ahp.FetchParams{Arguments: f.Args, Shows: int64(min(f.Shows, ahp.MaxFetchAnswer))})
	if err != nil {
		return nil, nil, fetchWhy(&f.Info, port, err)
	}
	a, blob, err := decodeFetch(r)
	if err == nil && blob != nil {
		blob.URI = a.URL
	}
	return a, blob, err
}

// choosePort returns the port that a call is about, 0 standing for the only one that is
// lent, or says what the agent can do.
func choosePort(i *agenttools.Info, port int) (int, error) {
	lent := func(p agenttools.LentPort) bool { return p.Port == port }
	switch n := len(i.LentPorts); {
	case i.Exit != nil:
		return 0, agenttools.ErrExited
	case port == 0 && n == 1:
		return i.LentPorts[0].Port, nil
	case port == 0 && n > 1:
		return 0, fetchError(fmt.Sprintf("%s has the lent ports %s; choose one with port", i.Name, portList(i)))
	case n > 0 && !slices.ContainsFunc(i.LentPorts, lent):
		return 0, notLent(i, port, ", only "+portList(i))
	case n == 0 && i.Away.IsZero() && !i.NoPorts:
		return 0, notLent(i, port, "")
	}
	return port, nil // Route says why not
}

// notLent tells an agent how it gets a port.
func notLent(i *agenttools.Info, port int, others string) error {
	_, name, _ := strings.Cut(i.Name, "/")
	name = shellWord(name)
	which, option := "no port of "+i.Name+" is lent", "PORT"
	if port > 0 {
		which, option = fmt.Sprintf("port %d of %s is not lent%s", port, i.Name, others), fmt.Sprint(port)
	}
	return fetchError(screen.Clean(fmt.Sprintf("%s: ask the person for it; on %s they say: tether lend %s --port %s", which, i.Machine, name, option)))
}

// shellWord returns a terminal's name as a word for a shell.
func shellWord(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:-"
	switch {
	case name == "" || strings.ContainsAny(name, "'\n"):
		return "ID"
	case strings.Trim(name, plain) == "" && name[0] != '-':
		return name
	}
	return "'" + name + "'"
}

func portList(i *agenttools.Info) string {
	var all []string
	for _, p := range i.LentPorts {
		all = append(all, fmt.Sprint(p.Port))
	}
	return strings.Join(all, ", ")
}

// fetchWhy returns an error of the way to a port in the words of the tools.
func fetchWhy(i *agenttools.Info, port int, err error) error {
	switch {
	case errors.Is(err, ErrUnseen):
		return agenttools.ErrNotFound
	case errors.Is(err, ErrNotLent):
		return notLent(i, port, "")
	case errors.Is(err, ErrAway):
		return fetchError(screen.Clean(cmp.Or(i.AwayWhy, "the machine is away") + ": " + i.Machine + " can be asked when it is back"))
	case errors.Is(err, ErrOld):
		return fetchError(screen.Clean("tether on " + i.Machine + " is too old to lend ports: ask the person to update it"))
	case errors.Is(err, context.DeadlineExceeded):
		return fetchError(fmt.Sprintf("the machine has not answered within %v", fetchTime))
	}
	return err
}

// fetch sends a call of fetch_page, and returns the machine's answer.
func (w *Way) fetch(ctx context.Context, p ahp.FetchParams) (r ahp.FetchResult, err error) {
	body, err := json.Marshal(p)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return r, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://machine/", bytes.NewReader(body))
	if err != nil {
		return r, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.RoundTrip(req)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, ahp.MaxFetchResult+1))
	switch why := resp.Header.Get(ahp.PortsError); {
	case err != nil:
		return r, err
	case why != "":
		return r, fetchError(clip.Marked(screen.Clean(why), agenttools.MaxSaneText))
	case resp.StatusCode != http.StatusOK || len(data) > ahp.MaxFetchResult || ahp.DecodeParams(data, &r) != nil:
		return r, errBadFetch
	case r.Error != "":
		return r, fetchError(screen.Clean(r.Error))
	}
	return r, nil
}

// decodeFetch decodes a machine's answer, and checks it.
func decodeFetch(r ahp.FetchResult) (*agenttools.FetchAnswer, *agenttools.Blob, error) {
	a := &agenttools.FetchAnswer{}
	if jsonspan.Unmarshal(r.Answer, a) != nil {
		return nil, nil, errBadFetch
	}
	// A body, and what a terminal has printed, may be long.
	body, printed, headers := a.Body, "", a.Headers
	a.Body, a.Headers = "", nil
	if a.Printed != nil {
		printed, a.Printed.Text = a.Printed.Text, ""
	}
	if !agenttools.Sane(a) || len(body) > maxFetchText || len(printed) > maxFetchText || len(headers) > maxFetchHeaders {
		return nil, nil, errBadFetch
	}
	a.Body = screen.CleanLines(body)
	if a.Printed != nil {
		a.Printed.Text = screen.CleanLines(printed)
	}
	a.Headers = make(map[string]string, len(headers))
	for name, value := range headers {
		if len(name) > agenttools.MaxSaneText || len(value) > agenttools.MaxSaneText {
			return nil, nil, errBadFetch
		}
		a.Headers[screen.Clean(name)] = screen.Clean(value)
	}
	if r.Blob == nil {
		return a, nil, nil
	}
	return a, &agenttools.Blob{Type: r.Blob.Type, Data: r.Blob.Data}, nil
}
