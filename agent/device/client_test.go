package device_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tether/agent/device"
	"tether/ahp/client"
	"tether/internal/testkit/must"
	"tether/pairing"
)

// key is one of a fixed seed.
func key(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// fakeHost gives prescribed answers, by the last part of the path.
type fakeHost map[string]func(body []byte) (status int, answer any)

func (f fakeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	answer, known := f[strings.TrimPrefix(r.URL.Path, "/below"+pairing.Path)]
	if err != nil || !known {
		http.NotFound(w, r)
		return
	}
	status, out := answer(body)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out)
}

func connect(t *testing.T, h http.Handler) *device.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := must.Get(device.New(client.Endpoint{URL: strings.Replace(s.URL, "http", "ws", 1) + "/below/?a=b"}, key(1)))(t)
	t.Cleanup(c.Close)
	return c
}

func always(status int, answer any) func([]byte) (int, any) {
	return func([]byte) (int, any) { return status, answer }
}

// challenges answers challenges as the host with that key.
func challenges(k ed25519.PrivateKey) func([]byte) (int, any) {
	return always(200, pairing.Challenge{HostKey: public(k), Challenge: bytes.Repeat([]byte{5}, pairing.NonceSize), Time: 1})
}

// opens answers sessions with a token that is signed by that key. The time of the
// challenge is 1970: no clock is compared.
func opens(k ed25519.PrivateKey) func([]byte) (int, any) {
	return func(body []byte) (int, any) {
		var a pairing.Answer
		_ = json.Unmarshal(body, &a)
		s := pairing.Session{Host: public(key(2)), Device: a.DeviceKey, Challenge: a.Challenge, Nonce: a.Nonce, Time: 1}
		if !s.Verify(pairing.ForSession, a.Signature) {
			return 403, pairing.Refusal{Code: pairing.CodeWrongKey}
		}
		return 200, pairing.Opened{Token: "t", Signature: s.SignToken(k, "t")}
	}
}

func TestAnswersToASession(t *testing.T) {
	refuse := func(code string) func([]byte) (int, any) {
		return always(403, pairing.Refusal{Code: code, Message: "no\x1b[2J"})
	}
	for name, c := range map[string]struct {
		host fakeHost
		want error
	}{
		"the host":             {fakeHost{"challenge": challenges(key(2)), "session": opens(key(2))}, nil},
		"another key":          {fakeHost{"challenge": challenges(key(3)), "session": opens(key(3))}, device.ErrIdentity},
		"another's signature":  {fakeHost{"challenge": challenges(key(2)), "session": opens(key(3))}, device.ErrIdentity},
		"no signature":         {fakeHost{"challenge": challenges(key(2)), "session": always(200, pairing.Opened{Token: "t"})}, device.ErrIdentity},
		"no key":               {fakeHost{"challenge": always(200, struct{}{})}, device.ErrIdentity},
		"revoked":              {fakeHost{"challenge": refuse(pairing.CodeUnknownDevice)}, device.ErrRevoked},
		"revoked in between":   {fakeHost{"challenge": challenges(key(2)), "session": refuse(pairing.CodeUnknownDevice)}, device.ErrRevoked},
		"it believes no key":   {fakeHost{"challenge": challenges(key(2)), "session": refuse(pairing.CodeWrongKey)}, device.ErrIdentity},
		"no such thing":        {fakeHost{}, errAny},
		"trouble":              {fakeHost{"challenge": always(500, "x")}, errAny},
		"another form":         {fakeHost{"challenge": always(200, []int{1})}, errAny},
		"more than is allowed": {fakeHost{"challenge": always(200, strings.Repeat("x", pairing.MaxMessage))}, errAny},
	} {
		token, err := connect(t, c.host).Session(t.Context(), public(key(2)))
		switch {
		case c.want == nil && (err != nil || token != "t"):
			t.Errorf("%s: %q, %v", name, token, err)
		case c.want == errAny && (err == nil || errors.Is(err, client.ErrUnauthorized)):
			t.Errorf("%s: %q, %v; want to try again later", name, token, err)
		case c.want != nil && c.want != errAny && (!errors.Is(err, c.want) || !errors.Is(err, client.ErrUnauthorized)):
			t.Errorf("%s: %q, %v; want %v", name, token, err, c.want)
		}
		if err != nil && (token != "" || strings.Contains(err.Error(), "\x1b")) {
			t.Errorf("%s: %q, %q", name, token, err)
		}
	}
}

// errAny stands for an error from outside the package.
var errAny = errors.New("any")

// A pairing whose host does not sign the exchanged values shows no code.
func TestBeginBelievesSignaturesAlone(t *testing.T) {
	begun := pairing.Begun{ID: "1", HostKey: public(key(2)), Nonce: bytes.Repeat([]byte{6}, pairing.NonceSize)}
	short := begun
	short.Nonce = nil
	reveals := func(k ed25519.PrivateKey) (begin, reveal func([]byte) (int, any)) {
		var asked pairing.Begin
		return func(body []byte) (int, any) { _ = json.Unmarshal(body, &asked); return 200, begun }, func(body []byte) (int, any) {
			var r pairing.Reveal
			_ = json.Unmarshal(body, &r)
			p := pairing.Pair{Host: begun.HostKey, Device: asked.DeviceKey, Name: asked.Name, HostNonce: begun.Nonce, DeviceNonce: r.Nonce}
			if !bytes.Equal(asked.Commitment, pairing.Commit(p.Device, p.Name, r.Nonce)) || !p.VerifyDevice(r.Signature) {
				return 403, pairing.Refusal{Code: pairing.CodeWrongKey}
			}
			return 200, pairing.Revealed{Signature: p.SignHost(k)}
		}
	}
	for name, k := range map[string]ed25519.PrivateKey{"good": key(2), "another's": key(3)} {
		begin, reveal := reveals(k)
		p, err := connect(t, fakeHost{"begin": begin, "reveal": reveal}).Begin(t.Context(), "laptop")
		if good := err == nil && len(p.Code) == 6; good != (name == "good") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if p, err := connect(t, fakeHost{"begin": always(200, short)}).Begin(t.Context(), "laptop"); err == nil {
		t.Errorf("without a nonce: %+v", p)
	}
}

// A pairing token is sent only to the host, not to where the host redirects.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var visits atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer other.Close()
	c := connect(t, http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	if _, err := c.Redeem(t.Context(), public(key(2)), "canary"); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("redeem: %v", err)
	}
	if visits.Load() != 0 {
		t.Error("it went where it was sent")
	}
}

// A host that is busy for a moment, or restarts behind a proxy, does not end a pairing
// that somebody may still approve.
func TestWaitOutlastsABusyHost(t *testing.T) {
	var asked atomic.Int32
	begun := pairing.Begun{ID: "1", HostKey: public(key(2)), Nonce: bytes.Repeat([]byte{6}, pairing.NonceSize)}
	var device pairing.Begin
	host := fakeHost{
		"begin": func(body []byte) (int, any) { _ = json.Unmarshal(body, &device); return 200, begun },
		"reveal": func(body []byte) (int, any) {
			var r pairing.Reveal
			_ = json.Unmarshal(body, &r)
			p := pairing.Pair{Host: begun.HostKey, Device: device.DeviceKey, Name: device.Name, HostNonce: begun.Nonce, DeviceNonce: r.Nonce}
			return 200, pairing.Revealed{Signature: p.SignHost(key(2))}
		},
		"wait": func([]byte) (int, any) {
			if asked.Add(1) == 1 {
				return 503, "too many requests at a time"
			}
			return 200, pairing.Waited{Approved: true, Principal: "laptop"}
		},
	}
	p := must.Get(connect(t, host).Begin(t.Context(), "laptop"))(t)
	if name, err := p.Wait(t.Context()); err != nil || name != "laptop" {
		t.Errorf("%q, %v; want the approval", name, err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	var asked atomic.Int32
	begun := pairing.Begun{ID: "1", HostKey: public(key(2)), Nonce: bytes.Repeat([]byte{6}, pairing.NonceSize)}
	var device pairing.Begin
	host := fakeHost{
		"begin": func(body []byte) (int, any) { _ = json.Unmarshal(body, &device); return 200, begun },
		"reveal": func(body []byte) (int, any) {
			var r pairing.Reveal
			_ = json.Unmarshal(body, &r)
			p := pairing.Pair{Host: begun.HostKey, Device: device.DeviceKey, Name: device.Name, HostNonce: begun.Nonce, DeviceNonce: r.Nonce}
			return 200, pairing.Revealed{Signature: p.SignHost(key(2))}
		},
		"wait": func([]byte) (int, any) { asked.Add(1); return 200, pairing.Waited{} },
	}
	p := must.Get(connect(t, host).Begin(t.Context(), "laptop"))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if n := asked.Load(); n > 2 {
		t.Errorf("a host that answers at once was asked %d times in a tenth of a second", n)
	}
}

func TestURLsThatAreNone(t *testing.T) {
	for _, url := range []string{"", "http://x", "ws://", "\x00", "ftp://x"} {
		if _, err := device.New(client.Endpoint{URL: url}, key(1)); err == nil {
			t.Errorf("%q is taken", url)
		}
	}
}

// With any answers of a host, only signed values are believed, and nothing panics.
func FuzzAnswers(f *testing.F) {
	f.Add(`{"version":1,"host_key":"AAAA"}`, 200)
	f.Add(`{"host_key":"gTl3DqhVH3zfTvnSjhnWyDa7O8d4R8DDzTjHhdOWoLg=","challenge":"AAAA","time":1}`, 200)
	f.Add(`{"code":"unknown_device","message":"x"}`, 403)
	f.Fuzz(func(t *testing.T, body string, status int) {
		if status < 200 || status > 599 {
			return
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		defer s.Close()
		c := must.Get(device.New(client.Endpoint{URL: strings.Replace(s.URL, "http", "ws", 1)}, key(1)))(t)
		defer c.Close()
		if token, err := c.Session(t.Context(), public(key(2))); err == nil {
			t.Errorf("a session: %q", token)
		}
		if p, err := c.Begin(t.Context(), "x"); err == nil {
			t.Errorf("a pairing: %+v", p)
		}
		if _, err := c.Redeem(t.Context(), public(key(2)), "x"); err == nil {
			t.Error("a redemption")
		}
		if k, err := c.HostKey(t.Context()); err == nil && len(k) != ed25519.PublicKeySize {
			t.Errorf("a key %x", k)
		}
	})
}
