package lentports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/agent/devserver"
	"tether/agent/fetch"
	"tether/agent/loans"
	"tether/agent/term"
	"tether/ahp"
	"tether/vocab"
)

// maxPath bounds a path with its query, in bytes. Servers in Node.js accept as much.
const maxPath = 16 << 10

func refusedf(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// plain returns a text without control characters, for a header.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// request is a request that whoever sends it may send.
type request struct {
	host    string
	h       term.Handle // as the host sees it
	port    vocab.LentPort
	reader  ahp.Reader
	call    bool     // of fetch_page, not for the server
	upgrade bool     // to a WebSocket
	url     *url.URL // for the server

	upgraded bool // the server has agreed
	foreign  bool // another program has the port

	ctx  context.Context // ends with the lending
	done context.CancelFunc
}

// who names the reader, as the host does.
func (q *request) who() string {
	switch {
	case q.reader.Guest != "":
		return "a guest with the link " + q.reader.Guest
	case len(q.reader.Names) > 0:
		return q.reader.Names[0]
	}
	return ""
}

func (q *request) key() wayKey { return wayKey{q.host, q.h.ID(), q.port.Port} }

// open decides about a request. The caller must call done.
func (s *Server) open(r *http.Request, host string, id term.ID) (*request, error) {
	q := &request{host: host}
	port, err := q.decode(r)
	if err != nil {
		return nil, err
	}
	if q.h, err = s.opts.Terminals(term.Host(host)).Terminal(id); err != nil {
		return nil, refusedf(http.StatusNotFound, "no such terminal")
	}
	if q.port, q.ctx, q.done, err = q.h.PortLent(r.Context(), host, port, q.admits(port)); err != nil {
		return nil, refusedf(http.StatusForbidden, "port %d: %v", port, err)
	}
	if !q.call {
		err = s.check(q, r)
	}
	if err != nil {
		q.done()
		return nil, err
	}
	return q, nil
}

// decode reads what the host says beside the request.
func (q *request) decode(r *http.Request) (port int, err error) {
	var values [4]string
	for i, name := range []string{ahp.PortsPort, ahp.PortsReader, ahp.PortsCall, ahp.PortsUpgrade} {
		switch all := r.Header.Values(name); {
		case len(all) > 1:
			return 0, refusedf(http.StatusBadRequest, "%s is there %d times", name, len(all))
		case len(all) == 1:
			values[i] = all[0]
		}
	}
	port, err = strconv.Atoi(values[0])
	if err != nil || strconv.Itoa(port) != values[0] || port < fetch.LeastPort || port > 65535 {
		return 0, refusedf(http.StatusBadRequest, "%s is %.20q, want %d to 65535", ahp.PortsPort, values[0], fetch.LeastPort)
	}
	if len(values[1]) > ahp.MaxPortsReader {
		return 0, refusedf(http.StatusBadRequest, "%s has %d bytes, at most %d are allowed", ahp.PortsReader, len(values[1]), ahp.MaxPortsReader)
	}
	if err := ahp.DecodeParams([]byte(values[1]), &q.reader); err != nil {
		return 0, refusedf(http.StatusBadRequest, "%s: %v", ahp.PortsReader, err)
	}
	if q.call = values[2] != ""; q.call && (values[2] != ahp.CallFetch || r.Method != http.MethodPost || values[3] != "") {
		return 0, refusedf(http.StatusBadRequest, "%s is %.20q with %.10s, want %s with POST", ahp.PortsCall, values[2], r.Method, ahp.CallFetch)
	}
	if q.upgrade = values[3] != ""; q.upgrade && (!strings.EqualFold(values[3], webSocket) || r.Method != http.MethodGet) {
		return 0, refusedf(http.StatusBadRequest, "%s is %.20q with %.10s, want %s with GET", ahp.PortsUpgrade, values[3], r.Method, webSocket)
	}
	return port, nil
}

// admits returns the function that decides whether the reader is in a loan's audience: a
// guest, by a link for that port, or somebody who may watch the terminal.
func (q *request) admits(port int) func(*loans.Loan) bool {
	return func(l *loans.Loan) bool {
		if q.reader.Guest != "" {
			return slices.ContainsFunc(l.Shares, func(s loans.Share) bool {
				return s.ID == q.reader.Guest && s.Port == port && !s.Ended && time.Now().Before(s.Until)
			})
		}
		if slices.ContainsFunc(l.Ports, func(p vocab.LentPort) bool { return p.Port == port && p.Guests }) {
			return false
		}
		_, ok := l.Audience.Admits(q.reader.Names, q.reader.Owner)
		return ok
	}
}

// check decides about a request for the server, and sets its URL.
func (s *Server) check(q *request, r *http.Request) (err error) {
	at := "localhost:" + strconv.Itoa(q.port.Port)
	if len(r.RequestURI) > maxPath {
		return refusedf(http.StatusForbidden, "the path has %d bytes, at most %d are allowed", len(r.RequestURI), maxPath)
	}
	if q.url, err = fetch.CheckPath(r.RequestURI); err != nil {
		return err
	}
	q.url.Scheme, q.url.Host = "http", at
	switch origins := r.Header.Values("Origin"); {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return refusedf(http.StatusForbidden, "method %s is for no dev server", r.Method)
	case len(origins) > 1 || len(origins) == 1 && origins[0] != "http://"+at:
		return refusedf(http.StatusForbidden, "a page of another origin has sent this request")
	case q.port.Write:
		return nil
	case !fetch.Reads(r.Method):
		return refusedf(http.StatusForbidden, "method %.20s: port %d is lent for reading only; tether lend --port %d --write allows more", r.Method, q.port.Port, q.port.Port)
	}
	return fetch.MayVisit(q.url, devserver.Of(q.h).Dirs(s.opts.Checkouts))
}

// fetch carries out a call of fetch_page.
func (s *Server) fetch(w http.ResponseWriter, r *http.Request, q *request) {
	var p ahp.FetchParams
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, ahp.MaxFetchArguments+1<<10))
	if err == nil {
		err = ahp.DecodeParams(body, &p)
	}
	if err != nil {
		refuse(w, refusedf(http.StatusBadRequest, "the call of %s: %v", ahp.CallFetch, err))
		return
	}
	s.count(q)
	result := s.opts.Fetch(q.ctx, q.host, q.h.ID(), q.port, p)
	if q.ctx.Err() != nil {
		refuse(w, context.Cause(q.ctx))
		return
	}
	answer, err := json.Marshal(result)
	if err = errors.Join(err, result.Validate()); err != nil {
		refuse(w, refusedf(http.StatusBadGateway, "the page is no answer for a host: %v", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // fails only with the link
}
