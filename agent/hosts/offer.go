package hosts

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/agent/device"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/ahp/client"
	"tether/pairing"
)

// maxAttempts bounds the pairings by a code that are under way at the same time.
const maxAttempts = 4

// attempts are the pairings by a code that are under way. The zero value is ready to use.
type attempts struct {
	mu        sync.Mutex
	all       map[string]*attempt
	finishing int // attempts that Finish has taken and not ended
}

// attempt is a pairing by a code that is under way.
type attempt struct {
	request localapi.PairRequest
	client  *device.Client
	pairing *device.Pairing
	expires time.Time
}

// add keeps an attempt and returns its id.
func (s *attempts) add(a *attempt) (id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]*attempt{}
	}
	for id, old := range s.all {
		if !time.Now().Before(old.expires) {
			old.client.Close()
			delete(s.all, id)
		}
	}
	if len(s.all) >= maxAttempts {
		return "", &localapi.Error{Code: localapi.CodeLimit, Message: "too many pairings await approval", Hint: "approve them, or wait ten minutes"}
	}
	id = rand.Text()
	s.all[id] = a
	return id, nil
}

// waiting reports whether a pairing is under way, which needs this machine's key.
func (s *attempts) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		if time.Now().Before(a.expires) {
			return true
		}
	}
	return s.finishing > 0
}

// take removes the attempt and returns it, or nil. The caller calls done when it has
// ended.
func (s *attempts) take(id string) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.all[id]
	delete(s.all, id)
	if a != nil {
		s.finishing++
	}
	return a
}

// done ends an attempt that take has returned.
func (s *attempts) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishing--
}

// Offer begins to pair by a code, if the host supports that. Only this machine's key is
// kept yet. If this machine is paired with the host already, the offer says so, and
// nobody at the host has to approve anything.
func (p *Paired) Offer(ctx context.Context, r localapi.PairRequest) (localapi.PairOffer, error) {
	if err := p.takeTurn(ctx); err != nil { // two calls at a time would each create a key
		return localapi.PairOffer{}, err
	}
	defer p.giveTurn()
	h, err := p.newHost(r)
	if err != nil {
		return localapi.PairOffer{}, err
	}
	hostKey, err := p.offers(ctx, h)
	if errors.Is(err, device.ErrNotOffered) {
		return localapi.PairOffer{SchemaVersion: localapi.SchemaVersion}, nil
	}
	if err != nil {
		return localapi.PairOffer{}, refusal(err)
	}
	if known, ok := p.already(ctx, h, hostKey, r.Store); ok {
		s := p.hostStatus(known)
		return localapi.PairOffer{SchemaVersion: localapi.SchemaVersion, Paired: &s}, nil
	}
	c, key, err := p.deviceClient(h, r.Store)
	if err != nil {
		return localapi.PairOffer{}, err
	}
	begun, err := c.Begin(ctx, plainName(p.opts.Machine))
	if err != nil {
		c.Close()
		return localapi.PairOffer{}, refusal(err)
	}
	id, err := p.attempts.add(&attempt{request: r, client: c, pairing: begun, expires: time.Now().Add(pairing.PairingTime)})
	if err != nil {
		c.Close()
		return localapi.PairOffer{}, err
	}
	return localapi.PairOffer{SchemaVersion: localapi.SchemaVersion, ID: id, Code: begun.Code, HostKey: pairing.Fingerprint(begun.HostKey),
		DeviceKey: pairing.Fingerprint(key.Public().(ed25519.PublicKey)), ExpiresMs: pairing.PairingTime.Milliseconds()}, nil
}

// already returns the paired host if it is paired by the given key, with all options as
// wanted, and still accepts this machine.
func (p *Paired) already(ctx context.Context, want host, hostKey ed25519.PublicKey, store string) (known host, ok bool) {
	known = p.pairedAt(want.URL, want.Name)
	if !hostKey.Equal(ed25519.PublicKey(known.HostKey)) || known.Pin != want.Pin || !slices.Equal(known.Also, want.Also) || known.Default != want.Default ||
		known.AssumeClientTerminals != want.AssumeClientTerminals || cmp.Or(known.OnDispose, term.DisposeAuto) != want.OnDispose {
		return host{}, false
	}
	if p.store.settle(store) != nil {
		return host{}, false
	}
	return known, p.verify(ctx, known) == nil
}

// offers asks the host for its key.
func (p *Paired) offers(ctx context.Context, h host) (ed25519.PublicKey, error) {
	pin, _ := client.ParsePin(h.Pin) // newHost has checked it
	c, err := device.New(client.Endpoint{URL: h.URL, Pin: pin}, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.HostKey(ctx)
}

// deviceClient returns a client with this machine's key, which it creates if there is
// none. The caller closes the client.
func (p *Paired) deviceClient(h host, store string) (*device.Client, ed25519.PrivateKey, error) {
	if err := p.store.settle(store); err != nil {
		return nil, nil, err
	}
	key, err := p.store.deviceKey(true)
	if err != nil {
		return nil, nil, err
	}
	pin, _ := client.ParsePin(h.Pin)
	c, err := device.New(client.Endpoint{URL: h.URL, Pin: pin}, key)
	return c, key, err
}

// Finish waits until the offered pairing is approved at the host, then keeps the host and
// links to it. The attempt is over when Finish returns, with any result.
func (p *Paired) Finish(ctx context.Context, id string) (localapi.HostStatus, error) {
	t := p.attempts.take(id)
	if t == nil {
		return localapi.HostStatus{}, &localapi.Error{Code: localapi.CodeNotPaired, Message: "no such pairing", Hint: "pair again: tether pair URL"}
	}
	defer t.client.Close()
	defer p.attempts.done()
	if _, err := t.pairing.Wait(ctx); err != nil {
		if errors.Is(err, device.ErrExpired) {
			err = &localapi.Error{Code: localapi.CodeTimeout, Message: "nobody approved the code at the host in time", Hint: "pair again: tether pair URL"}
		}
		return localapi.HostStatus{}, err
	}
	if err := p.takeTurn(ctx); err != nil {
		return localapi.HostStatus{}, err
	}
	defer p.giveTurn()
	h, err := p.newHost(t.request)
	if err != nil {
		return localapi.HostStatus{}, err
	}
	h.withKey(t.pairing.HostKey)
	return p.keep(ctx, h)
}

// redeem pairs with a pairing token.
func (p *Paired) redeem(ctx context.Context, h host, r localapi.PairRequest) (host, error) {
	hostKey, err := p.offers(ctx, h)
	if errors.Is(err, device.ErrNotOffered) {
		return h, &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: "this is a pairing token, and the host does not pair by keys",
			Hint: "check the URL; or use a machine token: tether-host token create NAME --role machine"}
	}
	if err != nil {
		return h, refusal(err)
	}
	c, _, err := p.deviceClient(h, r.Store)
	if err != nil {
		return h, err
	}
	defer c.Close()
	if _, err := c.Redeem(ctx, hostKey, r.Token); err != nil {
		if known, ok := p.already(ctx, h, hostKey, r.Store); ok && errors.Is(err, device.ErrToken) {
			return known, nil // this machine has used the token before
		}
		return h, refusal(err)
	}
	h.withKey(hostKey)
	return h, nil
}

// withKey makes h a host that is paired by keys. It gets a new clientId, since the host
// may know the former one as another machine's.
func (h *host) withKey(hostKey ed25519.PublicKey) {
	h.Token, h.HostKey, h.ClientID = "", hostKey, client.NewID()
}

// credential names the kind of credential that this machine uses.
func (h host) credential() string {
	switch {
	case h.HostKey != nil:
		return "key"
	case h.Sealed, h.Token != "":
		return "token"
	}
	return "none"
}

// leaveTimeout bounds the wait of Unpair for the host to forget this machine's key.
const leaveTimeout = 3 * time.Second

// leave asks the host to forget this machine's key. A host that cannot be reached keeps
// it until it is revoked there.
func (p *Paired) leave(h host) error {
	if h.HostKey == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	key, err := p.store.deviceKey(false)
	if err != nil {
		return err
	}
	pin, _ := client.ParsePin(h.Pin)
	for _, url := range append([]string{h.URL}, h.Also...) {
		var c *device.Client
		if c, err = device.New(client.Endpoint{URL: url, Pin: pin}, key); err != nil {
			return err
		}
		err = c.Leave(ctx, h.HostKey)
		c.Close()
		if err == nil || errors.Is(err, client.ErrUnauthorized) {
			break
		}
	}
	return err
}

// plainName turns a machine's name into one that hosts accept.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r)) {
			return r
		}
		return '-'
	}, name)
	plain = strings.TrimLeft(plain[:min(len(plain), pairing.MaxName)], "-_.")
	if plain == "" {
		return "machine"
	}
	return plain
}
