package oidc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"tether/host/admission"
	"tether/host/rights"
	"tether/internal/bounded"
	"tether/pairing"
)

// Bounds of the state kept for logins of the command line.
const (
	maxWaiting   = 64  // unfinished logins by a typed code
	maxConfirm   = 256 // people who have returned from the provider and were asked, without an answer yet
	maxGranted   = 256 // codes that were sent to a loopback address and not exchanged yet
	maxChallenge = 64  // bytes; a challenge has 43
	confirmTime  = 5 * time.Minute
	codeLetters  = "BCDFGHJKLMNPQRSTVWXZ" // without vowels, so that no code is a word (RFC 8628, section 6.1)
	codeLength   = 8
)

// purpose is what a login of the command line is for. It is a part of the attempt.
type purpose struct {
	Port      int    `json:"p,omitempty"` // of the loopback address to which the browser is sent
	State     string `json:"s,omitempty"` // chosen by the command line, which gets it back
	Challenge string `json:"c,omitempty"`
	Code      string `json:"t,omitempty"` // the typed code, instead of Port, State and Challenge
}

// waiting is a login by a typed code.
type waiting struct {
	id, code, challenge string
	from                string
	decided             chan struct{} // closed when token and principal are set
	token               string
	principal           rights.Principal
}

// confirming is a person who has returned from the provider and was asked whether the
// command line may act for them.
type confirming struct {
	why   purpose
	who   claims
	token *oauth2.Token
}

// granted is a token for the client that proves that it knows the verifier.
type granted struct {
	challenge, token string
	principal        rights.Principal
}

// logins are the command line's logins in progress. Provider.mu guards the changes of
// waiting ones.
type logins struct {
	waiting    bounded.Map[string, *waiting] // by id
	confirming bounded.Map[[sha256.Size]byte, confirming]
	granted    bounded.Map[[sha256.Size]byte, granted]
}

// beginCLI sends a browser to the provider for the command line, or shows the form for
// the code.
func (p *Provider) beginCLI(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	why := purpose{State: q.Get("state"), Challenge: q.Get("challenge"), Code: typed(q.Get("code"))}
	port, err := strconv.Atoi(q.Get("port"))
	switch {
	case len(r.URL.RawQuery) > maxQuery:
		return errUnknownAttempt
	case why.Code != "":
		why = purpose{Code: why.Code}
	case q.Has("port") && (err != nil || port < 1 || port > 65535 || len(why.Challenge) != len(pairing.LoginChallenge("")) || len(why.State) > maxChallenge):
		return &refusal{http.StatusBadRequest, "this link is not one of tether login's; run tether login again"}
	case !q.Has("port"):
		show(w, "code", nil)
		return nil
	default:
		why.Port = port
	}
	return p.send(w, r, &why)
}

// typed returns a code without the characters that people add when they type one; "" if
// it cannot be a code.
func typed(code string) string {
	code = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(code))
	if len(code) != codeLength || strings.Trim(code, codeLetters) != "" {
		return ""
	}
	return code
}

// askConfirm asks a person who has returned from the provider whether the command line
// may act for them, because an attacker may have sent them the link.
func (p *Provider) askConfirm(w http.ResponseWriter, why purpose, who claims, token *oauth2.Token) error {
	from := ""
	if why.Code != "" {
		one := p.waitingFor(why.Code)
		if one == nil {
			return errNoCode
		}
		from = one.from
	}
	id := rand.Text()
	p.cli.confirming.Put(sha256.Sum256([]byte(id)), confirming{why, who, token}, time.Now().Add(confirmTime))
	show(w, "confirm", struct{ Person, ID, Code, From string }{who.display(), id, dashed(why.Code), from})
	return nil
}

var (
	errNoCode     = &refusal{http.StatusForbidden, "no command line waits with this code, or no longer: run tether login again"}
	errNotAllowed = &refusal{http.StatusForbidden, "this question was answered already, or more than five minutes ago: run tether login again"}
)

// allow admits the command line, because its person has allowed that in the form of
// askConfirm. Only that page knows the form's id.
func (p *Provider) allow(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Origin") != p.opts.PublicURL {
		return &refusal{http.StatusForbidden, "requests from other pages are refused"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxQuery)
	c, ok := p.cli.confirming.Take(sha256.Sum256([]byte(r.PostFormValue("id"))))
	if !ok {
		return errNotAllowed
	}
	one := p.waitingFor(c.why.Code)
	if c.why.Code != "" && one == nil {
		return errNoCode
	}
	principal, secret, err := p.open(c.who, c.token)
	if err != nil {
		return err
	}
	p.audit(rights.AuditConnected, r.RemoteAddr, principal.Name, "the command line, by the identity provider")
	if one != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if one.token != "" {
			return errNoCode // a concurrent request has finished it
		}
		one.token, one.principal = secret, principal
		close(one.decided)
		show(w, "done", principal.Name)
		return nil
	}
	code := rand.Text()
	p.cli.granted.Put(sha256.Sum256([]byte(code)), granted{c.why.Challenge, secret, principal}, time.Now().Add(pairing.LoginCodeOK))
	show(w, "back", struct {
		Port        int
		Code, State string
	}{c.why.Port, code, c.why.State})
	return nil
}

// begun starts a login by a typed code.
func (p *Provider) begun(from string, b pairing.LoginBegin) (pairing.LoginBegun, error) {
	if len(b.Challenge) != len(pairing.LoginChallenge("")) {
		return pairing.LoginBegun{}, errBadBody
	}
	code := make([]byte, codeLength)
	rand.Read(code) // never fails, see crypto/rand
	for i, c := range code {
		code[i] = codeLetters[int(c)%len(codeLetters)] // some letters are slightly more likely; 34 random bits are left
	}
	one := &waiting{id: rand.Text(), code: string(code), challenge: b.Challenge, from: admission.PlaceOf(from), decided: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	own, all := 0, p.cli.waiting.All()
	for _, w := range all {
		if w.from == one.from {
			own++
		}
	}
	if len(all) >= maxWaiting || own >= maxWaiting/8 {
		return pairing.LoginBegun{}, errManyLogins
	}
	p.cli.waiting.Put(one.id, one, time.Now().Add(pairing.LoginTime))
	return pairing.LoginBegun{ID: one.id, Code: dashed(one.code)}, nil
}

// dashed returns a code in the form that people read.
func dashed(code string) string {
	if len(code) < codeLength {
		return code
	}
	return code[:codeLength/2] + "-" + code[codeLength/2:]
}

// waitingFor returns the login that waits with a code, or nil. Codes are long enough that
// the time of this search reveals nothing useful: each try takes a login at the provider.
func (p *Provider) waitingFor(code string) *waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.cli.waiting.All() {
		if code != "" && w.code == code && w.token == "" {
			return w
		}
	}
	return nil
}

// claim returns the token to the command line that has the verifier. It waits for the
// person for at most pairing.WaitTime.
func (p *Provider) claim(ctx context.Context, c pairing.LoginClaim) (pairing.LoggedIn, error) {
	if c.ID != "" {
		return p.claimWaiting(ctx, c)
	}
	g, ok := p.cli.granted.Take(sha256.Sum256([]byte(c.Code)))
	if !ok || !verified(g.challenge, c.Verifier) {
		return pairing.LoggedIn{}, errNoCode
	}
	return loggedIn(g.token, g.principal), nil
}

func (p *Provider) claimWaiting(ctx context.Context, c pairing.LoginClaim) (pairing.LoggedIn, error) {
	one, ok := p.cli.waiting.Get(c.ID)
	if !ok || !verified(one.challenge, c.Verifier) {
		return pairing.LoggedIn{}, errNoCode
	}
	timer := time.NewTimer(pairing.WaitTime)
	defer timer.Stop()
	select {
	case <-one.decided:
	case <-timer.C:
		return pairing.LoggedIn{}, nil
	case <-ctx.Done():
		return pairing.LoggedIn{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.cli.waiting.Take(c.ID); !ok {
		return pairing.LoggedIn{}, errNoCode // it was claimed already
	}
	return loggedIn(one.token, one.principal), nil
}

func verified(challenge, verifier string) bool {
	return subtle.ConstantTimeCompare([]byte(challenge), []byte(pairing.LoginChallenge(verifier))) == 1
}

func loggedIn(token string, p rights.Principal) pairing.LoggedIn {
	until, _ := p.Live.Deadline()
	return pairing.LoggedIn{Token: token, Person: p.Name, ExpiresMs: time.Until(until).Milliseconds()}
}
