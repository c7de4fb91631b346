package devices_test

import (
	"bytes"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"tether/host/devices"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/pairing"
)

// A token is good for one connection, which lasts until the machine is revoked.
func TestASessionIsOneConnection(t *testing.T) {
	w := newWorld(t)
	w.admit(key(1))
	s, answer := w.challenge(key(1), pairing.ForSession)
	var opened pairing.Opened
	w.must("session", answer, &opened)
	if !s.VerifyToken(opened.Token, opened.Signature) {
		t.Error("the token is not signed by the host")
	}
	if limit := (5 * time.Minute).Milliseconds(); opened.ExpiresMs <= 0 || opened.ExpiresMs > limit {
		t.Errorf("it is good for %d ms", opened.ExpiresMs)
	}
	p, ok := devices.Both(w.tokens, w.door).Authenticate(opened.Token)
	if !ok || p.Name != "laptop" || p.Role != rights.RoleMachine || p.Live.Err() != nil {
		t.Errorf("it lets in %+v, %v", p, ok)
	}
	if _, ok := w.door.Authenticate(opened.Token); ok {
		t.Error("it is good for two connections")
	}
	if _, ok := w.door.Authenticate(""); ok {
		t.Error("nothing is good for one")
	}
	if _, code := w.ask("x", "session", "", answer, nil); code != pairing.CodeExpired {
		t.Errorf("a replay: %q", code)
	}
	must.Get(w.tokens.Revoke("laptop"))(t)
	if status, code := w.ask("x", "challenge", "", pairing.Ask{DeviceKey: public(key(1))}, nil); code != "" {
		t.Logf("it asks again: %d %s", status, code)
	} else if _, ok := w.tokens.Device(public(key(2))); ok { // makes the host read the file
		t.Error("another machine is known")
	}
	select {
	case <-p.Live.Done():
	case <-time.After(patience):
		t.Error("the revoked machine's connection goes on")
	}
	if status, code := w.ask("x", "challenge", "", pairing.Ask{DeviceKey: public(key(1))}, nil); code != pairing.CodeUnknownDevice || status != http.StatusForbidden {
		t.Errorf("the revoked machine: %d %q", status, code)
	}
}

func TestAnswersThatDoNotFit(t *testing.T) {
	w := newWorld(t)
	w.admit(key(1))
	must.Get(w.tokens.AddDevice("desk", public(key(2)), nil))(t)
	for name, spoil := range map[string]func(*pairing.Session, *pairing.Answer){
		"another machine's key": func(_ *pairing.Session, a *pairing.Answer) { a.DeviceKey = public(key(2)) },
		"another's signature":   func(s *pairing.Session, a *pairing.Answer) { a.Signature = s.Sign(key(2), pairing.ForSession) },
		"for leaving":           func(s *pairing.Session, a *pairing.Answer) { a.Signature = s.Sign(key(1), pairing.ForLeaving) },
		"an hour later": func(s *pairing.Session, a *pairing.Answer) {
			s.Time += 3_600_000
			a.Signature = s.Sign(key(1), pairing.ForSession)
		},
		"for another host": func(s *pairing.Session, a *pairing.Answer) {
			s.Host = public(key(5))
			a.Signature = s.Sign(key(1), pairing.ForSession)
		},
		"no signature": func(_ *pairing.Session, a *pairing.Answer) { a.Signature = nil },
		"no nonce": func(s *pairing.Session, a *pairing.Answer) {
			s.Nonce, a.Nonce = nil, nil
			a.Signature = s.Sign(key(1), pairing.ForSession)
		},
		"a nonce changed": func(_ *pairing.Session, a *pairing.Answer) { a.Nonce = nonce(8) },
		"a challenge made up": func(s *pairing.Session, a *pairing.Answer) {
			a.Challenge = nonce(9)
			s.Challenge = nonce(9)
			a.Signature = s.Sign(key(1), pairing.ForSession)
		},
		"a machine that is none": func(_ *pairing.Session, a *pairing.Answer) { a.DeviceKey = []byte("short") },
	} {
		s, answer := w.challenge(key(1), pairing.ForSession)
		good := answer
		spoil(&s, &answer)
		if status, code := w.ask("x", "session", "", answer, nil); status == http.StatusOK || code != pairing.CodeWrongKey && code != pairing.CodeExpired {
			t.Errorf("%s: %d %q", name, status, code)
		}
		if bytes.Equal(answer.Challenge, good.Challenge) {
			if status, _ := w.ask("x", "session", "", good, nil); status == http.StatusOK {
				t.Errorf("%s: there was a second try", name)
			}
		}
	}
	for _, bad := range [][]byte{nil, []byte("x"), public(key(3))} {
		if _, code := w.ask("x", "challenge", "", pairing.Ask{DeviceKey: bad}, nil); code != pairing.CodeUnknownDevice {
			t.Errorf("a challenge for %x: %q", bad, code)
		}
	}
}

// Challenges and tokens end after a minute of the monotonic clock, and unused ones do not
// pile up.
func TestUnusedTokensExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.admit(key(1))
		_, late := w.challenge(key(1), pairing.ForSession)
		_, inTime := w.challenge(key(1), pairing.ForSession)
		time.Sleep(pairing.ChallengeTime - time.Second)
		var opened pairing.Opened
		w.must("session", inTime, &opened)
		time.Sleep(time.Second)
		if _, code := w.ask("x", "session", "", late, nil); code != pairing.CodeExpired {
			t.Errorf("a late answer: %q", code)
		}
		time.Sleep(pairing.SessionTime)
		if _, ok := w.door.Authenticate(opened.Token); ok {
			t.Error("a late token lets somebody in")
		}
		for range devices.MaxChallenges + 50 {
			w.must("challenge", pairing.Ask{DeviceKey: public(key(1))}, nil)
		}
		if challenges, sessions, _ := w.door.Kept(); challenges > devices.MaxChallenges || sessions > 1 {
			t.Errorf("%d challenges and %d sessions are kept", challenges, sessions)
		}
	})
}

func TestLeaving(t *testing.T) {
	w := newWorld(t)
	w.admit(key(1))
	_, wrong := w.challenge(key(1), pairing.ForSession)
	if _, code := w.ask("x", "leave", "", wrong, nil); code != pairing.CodeWrongKey {
		t.Errorf("what was signed for a session: %q", code)
	}
	p, _ := w.tokens.Device(public(key(1)))
	_, answer := w.challenge(key(1), pairing.ForLeaving)
	w.must("leave", answer, nil)
	if p.Live.Err() == nil {
		t.Error("its connections go on")
	}
	if _, code := w.ask("x", "challenge", "", pairing.Ask{DeviceKey: public(key(1))}, nil); code != pairing.CodeUnknownDevice {
		t.Errorf("it is still known: %q", code)
	}
	if len(w.audit) != 1 || w.audit[0].Type != devices.AuditUnpaired || w.audit[0].Name != "laptop" {
		t.Errorf("the record is %+v", w.audit)
	}
}
