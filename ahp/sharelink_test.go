package ahp_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"tether/ahp"
)

func TestShareLink(t *testing.T) {
	l := ahp.NewShareLink()
	l.URL = "https://host.example:8443/team/s/#"
	got, err := ahp.ParseShareLink(l.Text())
	hash := sha256.Sum256(l.Secret[:])
	if err != nil || got != l || ahp.CheckShareID(l.ID) != nil || l.SecretHash() != hex.EncodeToString(hash[:]) || !strings.HasSuffix(l.Text(), "#"+l.ID+"."+l.SecretText()) {
		t.Errorf("%+v of %s, %v", got, l.Text(), err)
	}
	if again := ahp.NewShareLink(); again.ID == l.ID || again.Secret == l.Secret {
		t.Error("two links are one")
	}
	good := l.Text()
	for _, text := range []string{
		"", "#", "x", l.URL, l.URL + l.ID, l.URL + l.ID + ".", good[:len(good)-1], good + "A", good + "#", good + "\n", " " + good,
		strings.Replace(good, "/s/", "/t/", 1), strings.Replace(good, "/s/", "/s/?a=b", 1), strings.Replace(good, "https:", "wss:", 1), strings.Replace(good, "https:", "javascript:", 1),
		strings.Replace(good, "https://", "https://user:word@", 1), strings.Replace(good, "host.example:8443", "", 1), strings.Replace(good, "#", "%23", 1),
		strings.Replace(good, l.ID, "../../etc", 1), strings.Replace(good, "host.example", strings.Repeat("a", 1<<10), 1),
	} {
		if got, err := ahp.ParseShareLink(text); !errors.Is(err, ahp.ErrShareLink) || got != (ahp.ShareLink{}) || len(text) > 60 && strings.Contains(err.Error(), l.SecretText()) {
			t.Errorf("%.200q: %+v, %v", text, got, err)
		}
	}
}
