package local

import (
	"context"
	"net/http"
	"time"
)

// HostChange changes the kept settings of a paired host.
type HostChange struct {
	Name    string `json:"name,omitempty"`    // the new one; "" leaves it
	Default bool   `json:"default,omitempty"` // true makes it the default host
	Tools   *bool  `json:"tools,omitempty"`   // offers this machine's tools to sessions there, or not; absent leaves it
	Retry   bool   `json:"retry,omitempty"`   // true tries at once to reach it, if there is no connection
}

// HostTools says whether sessions at a host are offered this machine's tools, and counts their calls.
type HostTools struct {
	On       bool   `json:"on"`
	Sessions int    `json:"sessions"` // sessions that are offered the tools now
	Running  int    `json:"running"`  // calls in progress
	Calls    int64  `json:"calls"`    // calls that have ended since the daemon's start
	Refused  int64  `json:"refused"`  // ended calls that were not carried out
	Problem  string `json:"problem,omitempty"`
}

func (s *Server) changeHost(w http.ResponseWriter, r *http.Request) error {
	var req HostChange
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req == (HostChange{}) {
		return &Error{Code: CodeBadRequest, Message: "nothing to change", Hint: "give name, default, tools or retry"}
	}
	h, err := s.opts.Hosts.ChangeHost(r.Context(), r.PathValue("name"), req)
	if err != nil {
		return err
	}
	return reply(w, h)
}

// ChangeHost renames the paired host of that name, makes it the default one, switches its tools or tries to reach it now.
func (c *Client) ChangeHost(ctx context.Context, name string, change HostChange) (HostStatus, error) {
	var h HostStatus
	return h, c.do(ctx, http.MethodPost, "/v1/hosts/"+segment(name), change, &h)
}

// Unpaired describes the remains of a host that was forgotten here.
type Unpaired struct {
	SchemaVersion int `json:"schema_version"`
	// Keeps is why the host may still let this machine's key in: it could not be told. "" if there is no such key.
	Keeps string `json:"keeps,omitempty"`
	// Withdrawn is how many terminals the host may still keep, since it is offline and was not told, KeptUntil until when; see HostStatus.
	Withdrawn int       `json:"withdrawn,omitempty"`
	KeptUntil time.Time `json:"kept_until,omitzero"`
}

// PairOffer is a pairing by a code that waits for somebody at the host.
type PairOffer struct {
	SchemaVersion int `json:"schema_version"`
	// ID names it for Finish; "" says that the host pairs by tokens alone, or that there is nothing to do.
	ID   string `json:"id,omitempty"`
	Code string `json:"code,omitempty"` // to be compared with the one at the host
	// HostKey and DeviceKey are fingerprints, of the host's key and this machine's.
	HostKey   string `json:"host_key,omitempty"`
	DeviceKey string `json:"device_key,omitempty"`
	ExpiresMs int64  `json:"expires_ms,omitempty"` // from now
	// Paired is the host if this machine is paired with it by keys already, just so, and let in.
	Paired *HostStatus `json:"paired,omitempty"`
}

func (s *Server) offer(w http.ResponseWriter, r *http.Request) error {
	var req PairRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req.Token != "" {
		return &Error{Code: CodeBadRequest, Message: "pairing by a code needs no token", Hint: "POST /v1/hosts pairs with a token"}
	}
	o, err := s.opts.Hosts.Offer(r.Context(), req)
	if err != nil {
		return err
	}
	return reply(w, o)
}

func (s *Server) finish(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, &struct{}{}); err != nil {
		return err
	}
	h, err := s.opts.Hosts.Finish(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return reply(w, h)
}

// Offer begins to pair by a code. An offer without an ID says that the host pairs by tokens alone, or, with Paired, that it is paired
// already.
func (c *Client) Offer(ctx context.Context, r PairRequest) (PairOffer, error) {
	var o PairOffer
	return o, c.do(ctx, http.MethodPost, "/v1/pairings", r, &o)
}

// Finish blocks until the offer with that ID was approved at the host, has expired or ctx ends, after which it is over.
func (c *Client) Finish(ctx context.Context, id string) (HostStatus, error) {
	var h HostStatus
	return h, c.do(ctx, http.MethodPost, "/v1/pairings/"+segment(id), struct{}{}, &h)
}
