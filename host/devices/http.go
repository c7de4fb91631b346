package devices

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"tether/host/admission"
	"tether/internal/jsonspan"
	"tether/pairing"
)

// refusal is the answer to a refused request.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return r.message }

var (
	errBadRequest    = &refusal{pairing.CodeBadRequest, "not a pairing request"}
	errUnknownDevice = &refusal{pairing.CodeUnknownDevice, "the host does not know this machine's key, or it was revoked"}
	errWrongToken    = &refusal{pairing.CodeWrongToken, "the pairing token is invalid, expired or already used"}
	errExpired       = &refusal{pairing.CodeExpired, "this pairing has expired or never existed"}
	errWrongKey      = &refusal{pairing.CodeWrongKey, "a signature or nonce is wrong"}
	errTooMany       = &refusal{pairing.CodeTooMany, "too many machines are pairing; try again in a minute"}
	errNotFound      = &refusal{pairing.CodeNotFound, "no such request"}
)

// statuses are the HTTP statuses of refusals.
var statuses = map[string]int{
	pairing.CodeBadRequest: http.StatusBadRequest, pairing.CodeUnknownDevice: http.StatusForbidden, pairing.CodeWrongToken: http.StatusForbidden,
	pairing.CodeExpired: http.StatusGone, pairing.CodeWrongKey: http.StatusForbidden, pairing.CodeTooMany: http.StatusTooManyRequests,
	pairing.CodeNotFound: http.StatusNotFound,
}

// ServeHTTP answers one request of the protocol. It refuses requests of web pages.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := d.serve(w, r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err == nil {
		_ = json.NewEncoder(w).Encode(answer) // fails only if the client is gone
		return
	}
	why, ok := errors.AsType[*refusal](err)
	status := http.StatusInternalServerError
	if ok {
		status = statuses[why.code]
	} else {
		why = &refusal{"internal", "the host cannot save this; its log says why"}
	}
	if d.noise.Allow(admission.PlaceOf(r.RemoteAddr)) {
		d.log.Warn().Str("remote", r.RemoteAddr).Str("path", lastPart(r)).Err(err).Msg("pairing request refused")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(pairing.Refusal{Code: why.code, Message: why.message})
}

func lastPart(r *http.Request) string {
	_, what, _ := strings.Cut(r.URL.Path, pairing.Path)
	return what
}

// serve returns the answer to a request, or the error that ServeHTTP answers with.
func (d *Door) serve(w http.ResponseWriter, r *http.Request) (any, error) {
	what := lastPart(r)
	if r.Header.Get("Origin") != "" {
		return nil, &refusal{pairing.CodeBadRequest, "web pages cannot pair a machine"}
	}
	if what == "identity" && r.Method == http.MethodGet {
		return pairing.Identity{Version: pairing.Version, HostKey: d.public}, nil
	}
	if r.Method != http.MethodPost {
		return nil, errNotFound
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, &refusal{pairing.CodeBadRequest, "the body must be application/json"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pairing.MaxMessage))
	if err != nil {
		return nil, errBadRequest
	}
	q := question{What: what, From: r.RemoteAddr, Body: body}
	if what == "redeem" {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return with(body, func(b pairing.Redeem) (any, error) { return d.redeem(q.From, token, b) })
	}
	if node, genuine := d.beganAt(body); d.elsewhere(node) {
		if !genuine {
			return nil, errExpired
		}
		return d.askNode(r.Context(), node, q)
	}
	return d.answer(r.Context(), q)
}

// answer answers a request that belongs to this node. It came to this node or to another
// one.
func (d *Door) answer(ctx context.Context, q question) (any, error) {
	switch q.What {
	case "begin":
		return with(q.Body, func(b pairing.Begin) (any, error) { return d.begin(q.From, b) })
	case "reveal":
		return with(q.Body, func(b pairing.Reveal) (any, error) { return d.reveal(b) })
	case "wait":
		return with(q.Body, func(b pairing.Wait) (any, error) { return d.wait(ctx.Done(), b.ID) })
	case "challenge":
		return with(q.Body, func(b pairing.Ask) (any, error) { return d.challengeFor(b.DeviceKey) })
	case "session":
		return with(q.Body, d.session)
	case "leave":
		return with(q.Body, func(b pairing.Answer) (any, error) { return d.leave(q.From, b) })
	}
	return nil, errNotFound
}

// with decodes the body and calls f with it.
func with[T any](body []byte, f func(T) (any, error)) (any, error) {
	var in T
	if err := jsonspan.Unmarshal(body, &in); err != nil {
		return nil, errBadRequest
	}
	return f(in)
}

func (d *Door) session(a pairing.Answer) (any, error) {
	s, p, err := d.answered(a, pairing.ForSession)
	if err != nil {
		return nil, err
	}
	return d.open(s, p), nil
}

func (d *Door) leave(from string, a pairing.Answer) (any, error) {
	s, p, err := d.answered(a, pairing.ForLeaving)
	if err != nil {
		return nil, err
	}
	if err := d.opts.Tokens.RemoveDevice(s.Device); err != nil {
		return nil, err
	}
	d.audit(AuditUnpaired, from, p.Name, pairing.Fingerprint(s.Device))
	return struct{}{}, nil
}
