package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"tether/host"
	"tether/platform/secret"
)

const storeVersion = 1

// kept is a subscription in the file.
type kept struct {
	Name      string          `json:"principal"`
	Role      host.Role       `json:"role"`
	Owner     string          `json:"owner,omitempty"` // owner of the principal: the same name with another owner is another principal
	Event     string          `json:"event"`
	Arguments json.RawMessage `json:"arguments"`
	URL       string          `json:"url"`
	Secret    []byte          `json:"secret"` // the newest; signatures need it
	Cursor    *string         `json:"cursor,omitempty"`
	Pending   *pending        `json:"pending,omitempty"`
	Until     time.Time       `json:"until"`
	Declared  bool            `json:"declared,omitempty"`
}

// store is the content of the file.
type store struct {
	Version       int                  `json:"version"`
	Epoch         int64                `json:"epoch,omitempty"` // of the leader, see Options.Place
	Subscriptions []kept               `json:"subscriptions"`
	Verified      map[string]time.Time `json:"verified,omitempty"`
}

// keep writes the state for the next host, and returns when that is done. Calls at the same time share a write. A failure is logged: then
// its subscribers start again.
func (h *Hub) keep() {
	if h.opts.File == "" && h.opts.Place == nil {
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
	f := store{Version: storeVersion, Epoch: h.opts.Epoch, Subscriptions: []kept{}, Verified: map[string]time.Time{}}
	for _, s := range h.all {
		f.Subscriptions = append(f.Subscriptions, kept{s.principal.Name, s.principal.Role, s.principal.Owner, s.request.Name, s.request.Arguments, s.request.URL, s.keys[0].key, s.watermark, s.pending, s.until.UTC(), s.request.Declared})
	}
	for who, until := range h.verified {
		f.Verified[who] = until.UTC()
	}
	h.mu.Unlock()
	data, err := json.Marshal(f)
	switch {
	case err != nil:
	case h.opts.Place != nil:
		err = h.replace(data)
	default:
		err = secret.WriteFile(h.opts.File, append(data, '\n'))
	}
	if err != nil {
		h.log.Error().Err(err).Msg("webhook subscriptions are not kept: they end with this host")
	}
}

// errSuperseded is returned where another leader has kept something.
var errSuperseded = errors.New("another node delivers webhooks")

// replace keeps data in the place that nodes share, unless a later leader has kept something there.
func (h *Hub) replace(data []byte) error {
	sealed, err := seal(h.opts.Key, data)
	if err != nil {
		return err
	}
	return h.opts.Place.Change(func(old []byte) ([]byte, error) {
		if before, err := h.opened(old); err == nil && before.Epoch > h.opts.Epoch {
			return nil, errSuperseded
		}
		return sealed, nil
	})
}

// opened is the content of the place that nodes share.
func (h *Hub) opened(sealed []byte) (f store, err error) {
	data, err := unseal(h.opts.Key, sealed)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Version != storeVersion {
		err = fmt.Errorf("version %d is unknown", f.Version)
	}
	return f, err
}

// restoreShared reads the subscriptions of the former leader, and notes this leader's epoch so that the former one can keep nothing more. It
// replaces content that it cannot read.
func (h *Hub) restoreShared() error {
	var f store
	err := h.opts.Place.Change(func(old []byte) (sealed []byte, err error) {
		f = store{}
		if old != nil {
			if f, err = h.opened(old); err != nil {
				h.log.Error().Err(err).Msg("the webhook subscriptions of the cluster cannot be used: clients subscribe again")
				f = store{}
			}
		}
		if f.Epoch > h.opts.Epoch {
			return nil, errSuperseded
		}
		f.Version, f.Epoch = storeVersion, h.opts.Epoch
		data, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		return seal(h.opts.Key, data)
	})
	if err != nil {
		return err
	}
	h.restoreFrom(&f)
	return nil
}

// restore reads the subscriptions of the former host. It leaves out expired ones and those of principals that have ended.
func (h *Hub) restore() error {
	if h.opts.Place != nil {
		return h.restoreShared()
	}
	if h.opts.File == "" {
		return nil
	}
	var f store
	err := secret.ReadJSON(h.opts.File, storeVersion, &f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		aside := h.opts.File + ".damaged"
		if moved := os.Rename(h.opts.File, aside); moved != nil {
			return fmt.Errorf("webhooks: %w; the file cannot be put aside: %w", err, moved)
		}
		h.log.Error().Err(err).Str("aside", aside).Msg("the file of webhook subscriptions cannot be used and is put aside: clients subscribe again")
		return nil
	}
	h.restoreFrom(&f)
	return nil
}

func (h *Hub) restoreFrom(f *store) {
	now := time.Now()
	for _, k := range f.Subscriptions[:min(len(f.Subscriptions), maxAll)] {
		p, ok := h.opts.Find(k.Name, k.Role)
		r := Request{Name: k.Event, Arguments: k.Arguments, URL: k.URL, Declared: k.Declared}
		var err error
		if r.URL, err = h.guard.check(k.URL); err != nil || !ok || p.Owner != k.Owner || !now.Before(k.Until) || k.Until.After(now.Add(MaxTTL)) || len(k.Secret) < minSecret || len(k.Secret) > maxSecret {
			continue
		}
		id := identify(p, r)
		h.all[id] = &subscription{id: id, principal: p, request: r, keys: []secretOf{{key: k.Secret}}, until: k.Until, watermark: k.Cursor, pending: k.Pending, wake: make(chan struct{}, 1)}
	}
	for who, until := range f.Verified {
		if now.Before(until) && !until.After(now.Add(verifiedTime)) && len(h.verified) < maxAll {
			h.verified[who] = until
		}
	}
}
