package webhook

import (
	"encoding/json"
	"time"

	"tether/host/rights"
)

const storeVersion = 1

// kept is a subscription in the file.
type kept struct {
	Name      string          `json:"principal"`
	Role      rights.Role     `json:"role"`
	Owner     string          `json:"owner,omitempty"` // id of the principal's owner: the same name with another owner is another principal
	Event     string          `json:"event"`
	Arguments json.RawMessage `json:"arguments"`
	URL       string          `json:"url"`
	Secret    []byte          `json:"secret"` // the newest secret, which is needed for signatures
	Cursor    *string         `json:"cursor,omitempty"`
	Pending   *pending        `json:"pending,omitempty"`
	Until     time.Time       `json:"until"`
	Declared  bool            `json:"declared,omitempty"`
	Push      *pushed         `json:"push,omitempty"` // of a browser's subscription; then without what Push says
}

// store is the content of the file.
type store struct {
	Version       int                  `json:"version"`
	Subscriptions []kept               `json:"subscriptions"`
	Verified      map[string]time.Time `json:"verified,omitempty"`
}

// keep writes the state for the next host, and returns when that is done. Concurrent
// calls share a write. A failure is logged; subscribers then have to subscribe again.
func (h *Hub) keep() {
	if h.doc.At == nil {
		return
	}
	h.mu.Lock()
	h.asked++
	mine := h.asked
	h.mu.Unlock()
	h.writing.Lock()
	defer h.writing.Unlock()
	h.mu.Lock()
	if h.written >= mine {
		h.mu.Unlock()
		return
	}
	h.written = h.asked
	f := store{Version: storeVersion, Subscriptions: []kept{}, Verified: map[string]time.Time{}}
	for _, s := range h.all {
		k := kept{Name: s.principal.Name, Role: s.principal.Role, Owner: s.principal.Owner, Until: s.until.UTC()}
		if s.push != nil {
			k.Push = new(*s.push)
		} else {
			k.Event, k.Arguments, k.URL, k.Secret = s.request.Name, s.request.Arguments, s.request.URL, s.keys[0].key
			k.Cursor, k.Pending, k.Declared = s.watermark, s.pending, s.request.Declared
		}
		f.Subscriptions = append(f.Subscriptions, k)
	}
	for who, until := range h.verified.All() {
		f.Verified[who] = until.UTC()
	}
	h.mu.Unlock()
	if err := h.doc.Set(f); err != nil {
		h.log.Error().Err(err).Msg("webhook subscriptions are not kept: they end with this host")
	}
}

// restore reads the subscriptions of the former host or leader. It leaves out expired
// ones and those of principals that have ended.
func (h *Hub) restore() error {
	if h.doc.At == nil {
		return nil
	}
	f, err := h.doc.Now()
	if err != nil {
		return err
	}
	now := time.Now()
	for _, k := range f.Subscriptions[:min(len(f.Subscriptions), maxAll)] {
		if h.opts.Push != nil {
			h.restorePush(k, now)
			continue
		}
		p, ok := h.opts.Find(k.Name, k.Role)
		r := Request{Name: k.Event, Arguments: k.Arguments, URL: k.URL, Declared: k.Declared}
		var err error
		if r.URL, err = h.guard.Check(k.URL); err != nil || !ok || p.Owner != k.Owner || !now.Before(k.Until) || k.Until.After(now.Add(MaxTTL)) || len(k.Secret) < minSecret || len(k.Secret) > maxSecret {
			continue
		}
		id := identify(p, r)
		h.all[id] = &subscription{id: id, principal: p, request: r, keys: []secretOf{{key: k.Secret}}, until: k.Until, watermark: k.Cursor, pending: k.Pending, wake: make(chan struct{}, 1)}
	}
	for who, until := range f.Verified {
		if now.Before(until) && !until.After(now.Add(verifiedTime)) {
			h.verified.Put(who, until, until)
		}
	}
	return nil
}

// restorePush adds the stored subscription of a browser. Its login is looked at when the
// hub runs.
func (h *Hub) restorePush(k kept, now time.Time) {
	if k.Push == nil || !now.Before(k.Until) || k.Until.After(now.Add(pushTTL)) || k.Push.To.Check() != nil || k.Push.Choice.None() {
		return
	}
	if endpoint, err := h.guard.Check(k.Push.To.Endpoint); err != nil || endpoint != k.Push.To.Endpoint {
		return
	}
	s := h.pushTo(rights.Principal{Name: k.Name, Role: k.Role, Owner: k.Owner}, *k.Push, k.Until)
	h.all[s.id] = s
}
