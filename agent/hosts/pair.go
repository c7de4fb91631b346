package hosts

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"tether/agent/device"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/lazyregexp"
	"tether/internal/loopback"
	"tether/pairing"
)

const (
	// verifyTimeout bounds the one connection that Pair makes.
	verifyTimeout = 15 * time.Second
	// withdrawTimeout bounds the wait of Unpair until the host has disposed of the
	// withdrawn terminals.
	withdrawTimeout = 2 * time.Second
	// alsoTimeout bounds the look at a host's further addresses.
	alsoTimeout = 5 * time.Second
	maxToken    = 4 << 10 // bytes
)

// hostName matches valid names of hosts. It is compiled on first use: holders run this
// program too, and never need it.
var hostName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Pair connects to the host once, to see whether it accepts this machine and its
// terminals, then keeps it and links to it. Pairing again with the same URL replaces the
// former settings, or leaves them if the host refuses. With another token the machine
// gets a new clientId, since the host knows the former one as the other token's, and all
// terminals are lent again.
func (p *Paired) Pair(ctx context.Context, r localapi.PairRequest) (localapi.HostStatus, error) {
	if err := p.takeTurn(ctx); err != nil {
		return localapi.HostStatus{}, err
	}
	defer p.giveTurn()
	h, err := p.newHost(r)
	if err != nil {
		return localapi.HostStatus{}, err
	}
	if strings.HasPrefix(r.Token, pairing.TokenPrefix) {
		if h, err = p.redeem(ctx, h, r); err != nil {
			return localapi.HostStatus{}, err
		}
	}
	if err := p.store.settle(r.Store); err != nil {
		return localapi.HostStatus{}, err
	}
	return p.keep(ctx, h)
}

// keep verifies that the host accepts this machine, then stores the host and links to it.
func (p *Paired) keep(ctx context.Context, h host) (localapi.HostStatus, error) {
	if err := p.verify(ctx, h); err != nil {
		return localapi.HostStatus{}, err
	}
	if err := p.verifyAlso(ctx, h); err != nil {
		return localapi.HostStatus{}, err
	}
	old, _ := p.store.find(h.Name)
	h.ClientTools = old.ClientTools && (old.HostKey == nil || bytes.Equal(old.HostKey, h.HostKey)) // tools that were given to one host are not another's
	if err := p.store.put(h); err != nil {
		return localapi.HostStatus{}, err
	}
	h, _ = p.store.find(h.Name) // without secrets that are in the keyring
	if link, _ := p.links.status(h.Name); link.State != uplink.StateOnline || !h.linksAs(old) {
		p.links.start(h, p.store.endpoint(h))
	}
	if old.ClientID != "" && old.ClientID != h.ClientID {
		p.forgetCalls(old)
	}
	p.auditHost(policy.EventPair, h.Name, h.URL)
	p.opts.Logger.Info().Str("host", h.Name).Str("url", h.URL).Msg("paired")
	return p.hostStatus(h), nil
}

// linksAs reports whether a link made for old serves h, too. The same clientId implies
// the same credential.
func (h host) linksAs(old host) bool {
	return h.ClientID == old.ClientID && h.URL == old.URL && slices.Equal(h.Also, old.Also) && h.Pin == old.Pin && h.OnDispose == old.OnDispose &&
		h.AssumeClientTerminals == old.AssumeClientTerminals && h.ClientTools == old.ClientTools
}

// takeTurn waits until no other call pairs or unpairs. The caller must call giveTurn.
func (p *Paired) takeTurn(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Paired) giveTurn() { <-p.turn }

// newHost validates the request and returns the host that it describes.
func (p *Paired) newHost(r localapi.PairRequest) (host, error) {
	address, err := hostURL(r.URL)
	if err != nil {
		return host{}, err
	}
	if err := checkToken(r.Token); err != nil {
		return host{}, err
	}
	how := term.OnDispose(cmp.Or(r.OnDispose, string(term.DisposeAuto)))
	if how != term.DisposeAuto && how != term.DisposeKill && how != term.DisposeUnlend {
		return host{}, localapi.BadRequest("on_dispose %.20q must be auto, kill or unlend", r.OnDispose)
	}
	pin, err := client.ParsePin(r.Pin)
	if err != nil {
		return host{}, localapi.BadRequest("%v", err)
	}
	if r.Pin != "" && address.Scheme != "wss" {
		return host{}, localapi.BadRequest("a pin needs a certificate, and %s has none; use wss://", address.Redacted())
	}
	also, err := alsoAt(address, r.Also, r.Pin)
	if err != nil {
		return host{}, err
	}
	h := host{
		Name: r.Name, URL: address.String(), Also: also, Token: r.Token, Pin: pin.String(), ClientID: client.NewID(),
		Default: r.Default || len(p.store.list()) == 0, AssumeClientTerminals: r.AssumeClientTerminals, OnDispose: how,
	}
	known := p.pairedAt(h.URL, r.Name)
	if known.Name != "" {
		h.Name, h.Default = known.Name, known.Default || r.Default
		if p.sameClient(known, r.Token) {
			h.ClientID = known.ClientID
		}
		return h, nil
	}
	if h.Name == "" {
		h.Name = p.freeName(address)
	}
	if !hostName().MatchString(h.Name) {
		return host{}, badName(h.Name)
	}
	if other, ok := p.store.find(h.Name); ok {
		return host{}, &localapi.Error{Code: localapi.CodePaired, Message: fmt.Sprintf("%q is the name of %s", h.Name, other.URL),
			Hint: "choose another with --name, or first: tether unpair " + h.Name}
	}
	return h, nil
}

func checkToken(token string) error {
	if len(token) > maxToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return localapi.BadRequest("the token must be at most %d visible ASCII characters", maxToken)
	}
	return nil
}

// maxAddresses bounds the addresses of one host.
const maxAddresses = 16

// alsoAt checks the further addresses of a host, and leaves out duplicates.
func alsoAt(first *url.URL, texts []string, pin string) (also []string, err error) {
	if len(texts) >= maxAddresses {
		return nil, localapi.BadRequest("a host has at most %d addresses", maxAddresses)
	}
	for _, text := range texts {
		u, err := hostURL(text)
		if err != nil {
			return nil, err
		}
		if pin != "" && u.Scheme != "wss" {
			return nil, localapi.BadRequest("a pin needs a certificate, and %s has none; use wss://", u.Redacted())
		}
		if one := u.String(); one != first.String() && !slices.Contains(also, one) {
			also = append(also, one)
		}
	}
	return also, nil
}

// sameClient reports whether the known clientId goes with this token at the host, and so
// may be used again.
func (p *Paired) sameClient(known host, token string) bool {
	if s, ok := p.links.status(known.Name); known.HostKey != nil || ok && errors.Is(s.Err, uplink.ErrTaken) {
		return false
	}
	kept := known.Token
	if known.Sealed {
		kept, _ = p.store.secret(known.ClientID) // without the keyring this cannot be known, and the token counts as another one
	}
	return kept == token
}

// pairedAt returns the host with this URL and, unless it is "", this name.
func (p *Paired) pairedAt(address, name string) host {
	for _, h := range p.store.list() {
		if h.URL == address && (name == "" || name == h.Name) {
			return h
		}
	}
	return host{}
}

// freeName derives a name from the URL that no other host has.
func (p *Paired) freeName(u *url.URL) string {
	name := u.Hostname()
	if loopback.Is(name) {
		name = "local"
	} else if net.ParseIP(name) == nil {
		name, _, _ = strings.Cut(name, ".")
	}
	name = strings.ReplaceAll(name, ":", "-")
	for n := 1; ; n++ {
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s-%d", name, n)
		}
		if _, taken := p.store.find(try); !taken {
			return try
		}
	}
}

// hostURL parses and checks the URL of a host: no credential may go to an ambiguous
// place, or across a network in clear text.
func hostURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil, localapi.BadRequest("invalid URL; use wss://host or ws://127.0.0.1:port")
	}
	if to, ok := map[string]string{"http": "ws", "https": "wss"}[u.Scheme]; ok {
		u.Scheme = to
	}
	u.Host = strings.ToLower(u.Host)
	u.Path = strings.TrimSuffix(u.Path, "/")
	switch {
	case u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "":
		return nil, localapi.BadRequest("the URL must be of the form wss://host or ws://127.0.0.1:port")
	case u.User != nil || u.Query().Has("tkn"):
		return nil, localapi.BadRequest("the URL must not hold a credential")
	case u.Fragment != "":
		return nil, localapi.BadRequest("the URL must not have a fragment")
	case u.Scheme == "ws" && !loopback.Is(u.Hostname()):
		return nil, &localapi.Error{Code: localapi.CodeInsecure, Message: "ws:// to another machine would send everything in clear text",
			Hint: "use wss://, or ws:// to 127.0.0.1 through a tunnel of your own"}
	}
	return u, nil
}

// URL checks a host's URL that a person has entered and returns it in its canonical form.
// Errors are *localapi.Error.
func URL(text string) (string, error) {
	u, err := hostURL(text)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// verify connects once. It uses a new clientId: a second connection with the link's would
// make the host close the link.
func (p *Paired) verify(ctx context.Context, h host) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	h.Also = nil // the first address is the one that was paired with
	conn, err := client.Connect(ctx, p.store.endpoint(h), client.Options{
		ClientID: client.NewID(), Info: ahp.Implementation{Name: "tether", Version: p.opts.Version}, Meta: ahp.NewClientMeta(),
		ReadLimit: client.LenderReadLimit, MaxValues: client.LenderMaxValues,
	})
	if err != nil {
		return refusal(err)
	}
	defer conn.Close()
	marker, ok := ahp.FindClientTerminals(conn.Result())
	if marker.Forbids() {
		return &localapi.Error{Code: localapi.CodeRefused, Message: "the host lets this token only observe; nothing can be lent with it",
			Hint: "pair with a token that may lend; at the host: tether-host token create NAME --role machine"}
	}
	if !ok && !h.AssumeClientTerminals {
		return &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: "the host takes no terminals of other machines; nothing can be lent to it",
			Hint: "pair with one that does, such as tether-host; --assume-client-terminals is for a host that takes them without saying so"}
	}
	return nil
}

// verifyAlso sees that what answers at the further addresses is the same host, by its
// key. An address that does not answer now may do so when it is needed.
func (p *Paired) verifyAlso(ctx context.Context, h host) error {
	if h.HostKey == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, alsoTimeout)
	defer cancel()
	for _, url := range h.Also {
		one := h
		one.URL = url
		key, err := p.offers(ctx, one)
		if err == nil && !key.Equal(ed25519.PublicKey(h.HostKey)) {
			return &localapi.Error{Code: localapi.CodeRefused, Message: fmt.Sprintf("%s is another host: its key is %s", url, pairing.Fingerprint(key)),
				Hint: "give addresses of one host only"}
		}
	}
	return nil
}

// wrongVersion is the hint where a host speaks other versions of the protocol.
const wrongVersion = "this program or the host needs a newer version"

// refusal turns an error of Connect into one with a code and a hint.
func refusal(err error) error {
	e := &localapi.Error{Code: localapi.CodeUnreachable, Message: err.Error(), Hint: "check that the host runs and the URL is right"}
	var version *ahp.VersionError
	seen := client.UnverifiedPin(err)
	switch {
	case errors.Is(err, device.ErrIdentity):
		e.Code, e.Hint = localapi.CodeRefused, "check that this is the right host; if its key was changed on purpose: tether unpair, then pair again"
	case errors.Is(err, device.ErrRevoked), errors.Is(err, device.ErrToken):
		e.Code, e.Hint = localapi.CodeRefused, "pair again: tether pair URL"
	case errors.Is(err, client.ErrPin):
		e.Code, e.Hint = localapi.CodeRefused, "check that this is the right host; if its certificate was changed, pair again with the new --pin"
	case seen != (client.Pin{}):
		e.Code, e.Message = localapi.CodeRefused, "the host's certificate is not trusted: "+certificateTrouble(err)
		e.Hint = "if you have verified that this is the host's certificate: --pin " + seen.String()
	case errors.Is(err, client.ErrUnauthorized):
		e.Code, e.Message, e.Hint = localapi.CodeRefused, "the host refused the token", "give the right token with --token-file"
	case errors.As(err, &version):
		e.Code, e.Hint = localapi.CodeUnsupportedHost, wrongVersion
	case errors.Is(err, context.DeadlineExceeded):
		e.Message = "the host did not answer in time"
	}
	return e
}

// certificateTrouble says why a certificate is not trusted, without the wrapping errors.
func certificateTrouble(err error) string {
	if v, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return v.Err.Error()
	}
	return err.Error()
}

// Unpair withdraws the terminals that are lent to the host, ends the link and forgets the
// host. It works if the host cannot be reached.
func (p *Paired) Unpair(ctx context.Context, name string) (localapi.Unpaired, error) {
	u := localapi.Unpaired{SchemaVersion: localapi.SchemaVersion}
	if err := p.takeTurn(ctx); err != nil {
		return u, err
	}
	defer p.giveTurn()
	h, ok := p.store.find(name)
	if !ok {
		return u, NotPaired(name)
	}
	if err := p.store.remove(name); err != nil {
		return u, err
	}
	for _, lent := range p.pool.As(term.User).List() {
		if lent.Info().LentToHost(name) {
			_ = lent.Unlend(name) // cannot fail: the person may end any lending
		}
	}
	p.links.withdrawn(name)
	before, _ := p.links.status(name)
	p.links.stop(name)
	p.forgetCalls(h)
	err := p.leave(h)
	if err != nil && !errors.Is(err, device.ErrRevoked) {
		u.Keeps = err.Error()
		p.opts.Logger.Warn().Str("host", name).Err(err).Msg("the host still knows this machine's key")
	}
	if u.Keeps != "" || h.HostKey == nil { // a host that forgets the machine's key also forgets its terminals
		u.Withdrawn, u.KeptUntil = before.Withdrawn, before.KeptUntil
	}
	if !p.attempts.waiting() {
		if err := p.store.dropDeviceKey(); err != nil {
			p.opts.Logger.Warn().Err(err).Msg("this machine's key is kept although no host knows it")
		}
	}
	p.auditHost(policy.EventUnpair, name, "")
	p.opts.Logger.Info().Str("host", name).Msg("unpaired")
	return u, nil
}
