package devices_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"tether/host/access"
	"tether/host/devices"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/pairing"
	"tether/platform/secret"
)

// begin pairs a machine up to the code.
func (w *world) begin(k ed25519.PrivateKey, name string) (p pairing.Pair, id string) {
	w.t.Helper()
	p = pairing.Pair{Device: public(k), Name: name, DeviceNonce: nonce(3)}
	var begun pairing.Begun
	w.must("begin", pairing.Begin{DeviceKey: p.Device, Name: name, Commitment: pairing.Commit(p.Device, name, p.DeviceNonce)}, &begun)
	p.Host, p.HostNonce = begun.HostKey, begun.Nonce
	var revealed pairing.Revealed
	w.must("reveal", pairing.Reveal{ID: begun.ID, Nonce: p.DeviceNonce, Signature: p.SignDevice(k)}, &revealed)
	if !p.VerifyHost(revealed.Signature) {
		w.t.Error("the host has not signed what was said")
	}
	return p, begun.ID
}

func TestPairingByACode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p, id := w.begin(key(1), "laptop")
		all, err := devices.ReadPending(access.OwnFile(w.pending))
		if err != nil || len(all) != 1 || all[0].Code != p.Code() || all[0].Name != "laptop" || all[0].Fingerprint != pairing.Fingerprint(p.Device) ||
			!strings.HasPrefix(all[0].Remote, "192.0.2.1") {
			t.Fatalf("who waits is %+v, %v", all, err)
		}
		var waited pairing.Waited
		w.must("wait", pairing.Wait{ID: id}, &waited)
		if waited.Approved {
			t.Fatal("it was let in by nobody")
		}
		for _, wrong := range []string{"", "0", "1000000", all[0].Fingerprint} {
			if _, err := devices.Approve(access.OwnFile(w.pending), w.tokens, wrong, ""); !errors.Is(err, devices.ErrNoPairing) {
				t.Errorf("the code %q: %v", wrong, err)
			}
		}
		if _, err := devices.Approve(access.OwnFile(w.pending), w.tokens, p.Code(), "someone"); !errors.Is(err, access.ErrTakenName) {
			t.Errorf("a taken name: %v", err)
		}
		if info, err := devices.Approve(access.OwnFile(w.pending), w.tokens, p.Code()[:3]+" "+p.Code()[3:], ""); err != nil || info.Principal != "laptop" {
			t.Fatalf("%+v, %v", info, err)
		}
		w.must("wait", pairing.Wait{ID: id}, &waited)
		if !waited.Approved || waited.Principal != "laptop" {
			t.Errorf("approved: %+v", waited)
		}
		if all, err := devices.ReadPending(access.OwnFile(w.pending)); err != nil || len(all) != 0 {
			t.Errorf("who waits afterwards is %+v, %v", all, err)
		}
		if _, code := w.ask("x", "wait", "", pairing.Wait{ID: id}, nil); code != pairing.CodeExpired {
			t.Errorf("waiting again: %q", code)
		}
		w.challenge(key(1), pairing.ForSession)
		var kinds []string
		for _, ev := range w.audit {
			kinds = append(kinds, ev.Type)
		}
		if strings.Join(kinds, " ") != "pairing paired" {
			t.Errorf("the record has %q", kinds)
		}
	})
}

// A former approval does not count for a new pairing: each pairing has a code of its own,
// which a person must approve.
func TestAnApprovalIsForOnePairing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.admit(key(1))
		_, id := w.begin(key(1), "laptop")
		var waited pairing.Waited
		w.must("wait", pairing.Wait{ID: id}, &waited)
		if waited.Approved {
			t.Error("a machine that was paired before is let in without a word")
		}
	})
}

// The machine cannot choose its nonce, key or name after it has seen the host's nonce.
func TestTheCommitmentBinds(t *testing.T) {
	for name, spoil := range map[string]func(p *pairing.Pair) ed25519.PrivateKey{
		"nonce":     func(p *pairing.Pair) ed25519.PrivateKey { p.DeviceNonce = nonce(9); return key(1) },
		"signature": func(*pairing.Pair) ed25519.PrivateKey { return key(2) },
		"size":      func(p *pairing.Pair) ed25519.PrivateKey { p.DeviceNonce = nil; return key(1) },
	} {
		w := newWorld(t)
		p := pairing.Pair{Device: public(key(1)), Name: "laptop", DeviceNonce: nonce(3)}
		var begun pairing.Begun
		w.must("begin", pairing.Begin{DeviceKey: p.Device, Name: p.Name, Commitment: pairing.Commit(p.Device, p.Name, p.DeviceNonce)}, &begun)
		p.Host, p.HostNonce = begun.HostKey, begun.Nonce
		good := p
		k := spoil(&p)
		if _, code := w.ask("x", "reveal", "", pairing.Reveal{ID: begun.ID, Nonce: p.DeviceNonce, Signature: p.SignDevice(k)}, nil); code != pairing.CodeWrongKey {
			t.Errorf("%s: %q", name, code)
		}
		if _, code := w.ask("x", "reveal", "", pairing.Reveal{ID: begun.ID, Nonce: good.DeviceNonce, Signature: good.SignDevice(key(1))}, nil); code != pairing.CodeExpired {
			t.Errorf("%s: a second try: %q", name, code)
		}
		if all, _ := devices.ReadPending(access.OwnFile(w.pending)); len(all) != 0 {
			t.Errorf("%s: it waits: %+v", name, all)
		}
	}
}

// An attacker between a machine and the host needs about a million pairings to match the
// machine's code. Of a thousand tries within the ten minutes of one pairing, the door
// allows 25.
func TestAThousandGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		begun := 0
		for n := range 1000 {
			device := public(key(byte(n)))
			status, code := w.ask(fmt.Sprintf("192.0.2.%d", n%200), "begin", "", pairing.Begin{DeviceKey: device, Name: "m", Commitment: nonce(1)}, nil)
			switch {
			case code == "":
				begun++
			case status != http.StatusTooManyRequests:
				t.Fatalf("%d %s", status, code)
			}
			time.Sleep(pairing.PairingTime / 1000)
		}
		if most := devices.BeginBurst + int(pairing.PairingTime/devices.BeginEvery); begun > most {
			t.Errorf("%d pairings were begun", begun)
		}
		time.Sleep(time.Duration(devices.BeginBurst) * devices.BeginEvery)
		for n := range devices.BeginBurst { // as many as may be begun at once
			w.begin(key(byte(n+10)), "waits")
		}
		for range devices.MaxPending - devices.BeginBurst {
			time.Sleep(devices.BeginEvery)
			w.begin(key(99), "waits")
		}
		time.Sleep(devices.BeginEvery)
		in := pairing.Begin{DeviceKey: public(key(1)), Name: "m", Commitment: nonce(1)}
		if _, code := w.ask("x", "begin", "", in, nil); code != pairing.CodeTooMany {
			t.Errorf("one more: %q", code)
		}
		time.Sleep(pairing.PairingTime)
		if _, id := w.begin(key(1), "later"); id == "" {
			t.Error("afterwards nobody can pair")
		}

		// Pairing tokens are limited, too, by address.
		right, _, err := w.tokens.CreatePairing("desk", time.Hour)
		must.Do(t, err)
		redeem := func(from, token string) string {
			r := pairing.Redemption{Host: public(w.key), Device: public(key(1)), Token: token, Nonce: nonce(1)}
			_, code := w.ask(from, "redeem", token, pairing.Redeem{DeviceKey: r.Device, Nonce: r.Nonce, Signature: r.SignDevice(key(1))}, nil)
			return code
		}
		codes := map[string]int{}
		for n := range 1000 {
			codes[redeem("192.0.2.9", fmt.Sprint(pairing.TokenPrefix, n))]++
		}
		if codes[pairing.CodeWrongToken] != devices.RedeemBurst || codes[pairing.CodeTooMany] != 1000-devices.RedeemBurst {
			t.Errorf("the answers to guesses are %v", codes)
		}
		for n := range devices.RedeemBurst { // an IPv6 network counts as one address
			redeem(fmt.Sprintf("[2001:db8::%x]", n+1), pairing.TokenPrefix+"x")
		}
		if code := redeem("[2001:db8::ffff]", pairing.TokenPrefix+"y"); code != pairing.CodeTooMany {
			t.Errorf("another address of a network that has guessed: %q", code)
		}
		if code := redeem("192.0.2.10", pairing.TokenPrefix+"y"); code != pairing.CodeWrongToken {
			t.Errorf("another place: %q", code)
		}
		w.tokens.Authenticate("x") // the host has read the file since
		if code := redeem("192.0.2.9", right); code != "" {
			t.Errorf("the right one from a place that has guessed: %q", code)
		}
		if code := redeem("192.0.2.10", right); code != pairing.CodeWrongToken {
			t.Errorf("the token again: %q", code)
		}
	})
}

// Invalid requests and wrong pairing tokens are recorded, but fill neither the log nor
// the audit record. The tried tokens are not recorded.
func TestRefusedPairingsFillNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Output
		logger := zerolog.New(&log)
		w := newWorldWith(t, &logger)
		const many = 300
		for n := range many {
			token := fmt.Sprint(pairing.TokenPrefix, "guess", n)
			r := pairing.Redemption{Host: public(w.key), Device: public(key(1)), Token: token, Nonce: nonce(1)}
			w.ask("192.0.2.9", "redeem", token, pairing.Redeem{DeviceKey: r.Device, Nonce: r.Nonce, Signature: r.SignDevice(key(1))}, nil)
			w.ask("192.0.2.10", []string{"begin", "reveal", "nonsense", "session"}[n%4], "", struct{}{}, nil)
		}
		lines := strings.Count(log.String(), "\n")
		if lines < 10 || lines > many/5 {
			t.Errorf("%d refusals are %d lines in the log", 2*many, lines)
		}
		if len(w.audit) != devices.RedeemBurst {
			t.Errorf("the record has %d entries for %d tokens that were looked at", len(w.audit), devices.RedeemBurst)
		}
		for _, ev := range w.audit {
			if ev.Type != rights.AuditRefused || !strings.HasPrefix(ev.Remote, "192.0.2.9") || ev.Role != "" {
				t.Errorf("the record has %+v", ev)
			}
		}
		if all := log.String() + fmt.Sprint(w.audit); strings.Contains(all, "guess") {
			t.Errorf("what was tried is written down: %s", all)
		}
		time.Sleep(time.Hour)
		before := strings.Count(log.String(), "\n")
		w.ask("192.0.2.10", "begin", "", struct{}{}, nil)
		if after := strings.Count(log.String(), "\n"); after != before+1 {
			t.Errorf("an hour later one more is %d lines", after-before)
		}
	})
}

func TestReusedCodesAreRefused(t *testing.T) {
	w := newWorld(t)
	p, _ := w.begin(key(1), "laptop")
	data := must.Get(os.ReadFile(w.pending))(t)
	entry := data[bytes.IndexByte(data, '[')+1 : bytes.LastIndexByte(data, ']')]
	doubled := bytes.Replace(data, entry, append(append(bytes.Clone(entry), ','), entry...), 1)
	must.Do(t, os.WriteFile(w.pending, doubled, 0o600))
	if _, err := devices.Approve(access.OwnFile(w.pending), w.tokens, p.Code(), ""); !errors.Is(err, devices.ErrSameCode) {
		t.Errorf("%v", err)
	}
}

// Invalid requests are refused before the door keeps anything for them, and none causes a
// panic.
func TestRequestsThatAreNone(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		method, path, kind, origin, body string
		want                             int
	}{
		"identity":      {"GET", "identity", "", "", "", 200},
		"from a page":   {"GET", "identity", "", "http://evil.example", "", 400},
		"a null page":   {"POST", "begin", "application/json", "null", "{}", 400},
		"get":           {"GET", "begin", "", "", "", 404},
		"unknown":       {"POST", "approve", "application/json", "", "{}", 404},
		"a form":        {"POST", "begin", "application/x-www-form-urlencoded", "", "{}", 400},
		"no type":       {"POST", "begin", "", "", "{}", 400},
		"no JSON":       {"POST", "begin", "application/json", "", "{]", 400},
		"nothing":       {"POST", "begin", "application/json", "", "{}", 400},
		"oversized":     {"POST", "begin", "application/json", "", `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, 400},
		"a wrong field": {"POST", "begin", "application/json", "", `{"device_key":7}`, 400},
		"reveal":        {"POST", "reveal", "application/json", "", "{}", 410},
		"wait":          {"POST", "wait", "application/json", "", "{}", 410},
		"redeem":        {"POST", "redeem", "application/json", "", "{}", 403},
		"challenge":     {"POST", "challenge", "application/json", "", "{}", 403},
		"session":       {"POST", "session", "application/json", "", "{}", 410},
		"half a letter": {"POST", "wait", "application/json", "", `{"id":"\ud800"}`, 400},
		"leave":         {"POST", "leave", "application/json", "", "{}", 410},
	} {
		r := httptest.NewRequest(c.method, "/below"+pairing.Path+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		rec := httptest.NewRecorder()
		w.door.ServeHTTP(rec, r)
		if rec.Code != c.want {
			t.Errorf("%s: %d %s, want %d", name, rec.Code, rec.Body, c.want)
		}
	}
	for _, name := range []string{"", "two words", "\x1b]0;x\x07", strings.Repeat("x", 65)} {
		in := pairing.Begin{DeviceKey: public(key(1)), Name: name, Commitment: nonce(1)}
		if _, code := w.ask("x", "begin", "", in, nil); code != pairing.CodeBadRequest {
			t.Errorf("the name %q: %q", name, code)
		}
	}
}

func FuzzRequests(f *testing.F) {
	f.Add("begin", `{"device_key":"AAAA","name":"x","commitment":"AAAA"}`)
	f.Add("session", `{"challenge":"AAAA"}`)
	f.Fuzz(func(t *testing.T, what, body string) {
		w := newWorld(t)
		r := httptest.NewRequest(http.MethodPost, pairing.Path, strings.NewReader(body))
		r.URL.Path += what
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		w.door.ServeHTTP(rec, r)
		if all, _ := devices.ReadPending(access.OwnFile(w.pending)); rec.Code == http.StatusOK && what != "begin" || len(all) != 0 {
			t.Errorf("%s %q: %d %s, %d wait", what, body, rec.Code, rec.Body, len(all))
		}
	})
}

// The error for a file of another version says so.
func TestPendingOfAnotherVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pending.json")
	must.Do(t, secret.WriteFile(path, []byte(`{"version":9}`)))
	if _, err := devices.ReadPending(access.OwnFile(path)); err == nil || !strings.Contains(err.Error(), "version 9") || strings.Contains(err.Error(), "%!") {
		t.Errorf("it says %v", err)
	}
}
