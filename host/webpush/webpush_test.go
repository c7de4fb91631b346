package webpush_test

import (
	"bytes"
	"crypto/ecdh"
	"encoding/base64"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"tether/host/webpush"
	"tether/internal/testkit"
)

func decode(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The example of RFC 8291, appendix A.
func TestVector(t *testing.T) {
	single, err := ecdh.P256().NewPrivateKey(decode(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	to := webpush.Subscription{Endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
		Keys: webpush.Keys{P256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", Auth: "BTBZMqHH6r4Tts7J_aSIgg"}}
	text := []byte("When I grow up, I want to be a watermelon")
	got, err := webpush.Encrypt(to, single, decode(t, "DGv6ra1nlYgDCS1FRnbzlw"), text, 0)
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if text := base64.RawURLEncoding.EncodeToString(got); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	b := testkit.Browser(t, "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94", to.Keys.Auth)
	if back := b.Decrypt(t, got); !bytes.Equal(back, text) {
		t.Errorf("the browser reads %q", back)
	}
}

// All requests have the same size, and name who sends them by a key that is the same
// after each start.
func TestRequests(t *testing.T) {
	key, err := webpush.KeyOf([]byte("a secret"))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := webpush.KeyOf([]byte("a secret"))
	other, _ := webpush.KeyOf([]byte("another secret"))
	if key.Public() != again.Public() || key.Public() == other.Public() || len(decode(t, key.Public())) != 65 {
		t.Errorf("keys: %s, again %s, of another secret %s", key.Public(), again.Public(), other.Public())
	}
	b := testkit.Browser(t, "", "")
	to := webpush.Subscription{Endpoint: "https://push.example.net:8443/x?y=1", Keys: webpush.Keys(b.Keys())}
	for _, text := range []string{"", "short", strings.Repeat("x", webpush.MaxText)} {
		r, err := key.Request(t.Context(), to, webpush.Message{Text: []byte(text), TTL: time.Hour, Topic: "t", Contact: "https://host.example"})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) > 4096 || r.ContentLength != 3174 {
			t.Errorf("%d bytes of text become %d, %v", len(text), r.ContentLength, err)
		}
		if got := b.Decrypt(t, body); string(got) != text {
			t.Errorf("%.20q becomes %.20q", text, got)
		}
		if r.Header.Get("TTL") != "3600" || r.Header.Get("Topic") != "t" || r.Header.Get("Content-Encoding") != "aes128gcm" {
			t.Errorf("%v", r.Header)
		}
		token, signer, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "vapid t="), ", k=")
		parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
		if !ok || signer != key.Public() || err != nil {
			t.Fatalf("%v, %v", r.Header, err)
		}
		var claims jwt.Claims
		if err := parsed.Claims(testkit.P256(t, signer), &claims); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(claims.Expiry.Time()); claims.Validate(jwt.Expected{AnyAudience: jwt.Audience{"https://push.example.net:8443"}}) != nil || claims.Subject != "https://host.example" || left > 24*time.Hour {
			t.Errorf("%+v", claims)
		}
	}
	if _, err := key.Request(t.Context(), to, webpush.Message{Text: make([]byte, webpush.MaxText+1)}); err == nil {
		t.Error("a longer text was taken")
	}
}

func TestBadSubscriptions(t *testing.T) {
	good := webpush.Subscription{Endpoint: "https://push.example.net/", Keys: webpush.Keys(testkit.Browser(t, "", "").Keys())}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*webpush.Subscription){
		"no key":         func(s *webpush.Subscription) { s.Keys.P256dh = "" },
		"no point":       func(s *webpush.Subscription) { s.Keys.P256dh = "B" + strings.Repeat("A", 86) },
		"infinity":       func(s *webpush.Subscription) { s.Keys.P256dh = "AA" },
		"no base64":      func(s *webpush.Subscription) { s.Keys.P256dh = "****" },
		"a short secret": func(s *webpush.Subscription) { s.Keys.Auth = "AAAA" },
		"no secret":      func(s *webpush.Subscription) { s.Keys.Auth = "" },
		"a long URL":     func(s *webpush.Subscription) { s.Endpoint += strings.Repeat("x", 1000) },
	} {
		s := good
		change(&s)
		if s.Check() == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}
