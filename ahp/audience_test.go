package ahp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
)

func TestAudience(t *testing.T) {
	want := ahp.Audience{Grants: []ahp.Grant{{To: "ann"}, {To: "group:web", From: 12}, {To: "everyone"}}, Denied: []string{"agent:ci"}, HostGrants: true}
	got, ok, err := ahp.FindAudience(ahp.AddAudience(nil, want))
	if diff := cmp.Diff(want, got); diff != "" || !ok || err != nil {
		t.Errorf("%v, %v\n%s", ok, err, diff)
	}
	if _, ok, err := ahp.FindAudience(nil); ok || err != nil {
		t.Errorf("without one: %v, %v", ok, err)
	}
	for text, want := range map[string]string{
		`{"grants":[{"to":"-ann"}]}`:              "is not a name",
		`{"grants":[{"to":"a b"}]}`:               "is not a name",
		`{"grants":[{"to":""}]}`:                  "is not a name",
		`{"grants":[{"to":"group:"}]}`:            "is not a name",
		`{"grants":[{"to":"team:web"}]}`:          "is not a name",
		`{"grants":[{"to":"ann","from":-1}]}`:     "want 0 or more",
		`{"denied":["everyone"]}`:                 "cannot be denied",
		`{"denied":["group:web"]}`:                "is not a name",
		`{"grants":` + manyGrants(65) + `}`:       "more than 64",
		`{"grants":[{"to":"` + long(65) + `"}]}`:  "too long",
		`{"denied":["agent:` + long(65) + `"]}`:   "too long",
		`{"grants":[{"to":1}]}`:                   "grants.to",
		`{"hostGrants":"yes"}`:                    "hostGrants",
		`{"grants":[{"to":"ann","from":"here"}]}`: "grants.from",
	} {
		if _, ok, err := ahp.FindAudience(ahp.Meta{ahp.AudienceKey: json.RawMessage(text)}); !ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want something with %q", text, err, want)
		}
	}
}

func long(n int) string { return strings.Repeat("a", n) }

func manyGrants(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"to":"ann"},`, n), ",") + "]"
}

func TestWatchersAndShares(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	for _, c := range []struct {
		into       any
		text, want string
	}{
		{new(ahp.WatchersParams), `{"channel":"a:/b","may":["ann"],"watching":[{"who":"\u001b[2J","kind":"person","since":"2026-01-02T03:04:05Z"}],"more":2}`, ""},
		{new(ahp.WatchersParams), `{"channel":"a:/b","may":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 33), ",") + `]}`, "more than 32"},
		{new(ahp.WatchersParams), `{"channel":"a:/b","more":-1}`, "more is -1"},
		{new(ahp.WatchersParams), `{"channel":"a:/b","watching":[{"who":"` + long(257) + `"}]}`, "who"},
		{new(ahp.ShareParams), `{"channel":"a:/b","id":"abcdefgh","secretHash":"` + hash + `","expiresAt":"2026-01-02T03:04:05Z","once":true}`, ""},
		{new(ahp.ShareParams), `{"channel":"a:/b","id":"abcdefgh","secretHash":"0a","expiresAt":"2026-01-02T03:04:05Z"}`, "secretHash"},
		{new(ahp.ShareParams), `{"channel":"a:/b","id":"abcdefgh","secretHash":"` + hash + `"}`, "expiresAt"},
		{new(ahp.ShareParams), `{"channel":"a:/b","id":"../../etc","secretHash":"` + hash + `","expiresAt":"2026-01-02T03:04:05Z"}`, "not the id"},
		{new(ahp.UnshareParams), `{"channel":"a:/b","id":"ABCDEFGH"}`, "not the id"},
		{new(ahp.AudienceParams), `{"channel":"a:/b","grants":[{"to":"ann"}],"guestsOnly":true}`, ""},
		{new(ahp.AudienceParams), `{"grants":[{"to":"Ann@x.example"}]}`, ""}, // without a channel: asks which names the host accepts
		{new(ahp.AudienceParams), `{"channel":"b","grants":[]}`, "no scheme"},
	} {
		err := ahp.DecodeParams([]byte(c.text), c.into)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%.80s: %v, want %q", c.text, err, c.want)
		}
	}
	if p := new(ahp.ShareParams); ahp.DecodeParams([]byte(`{"channel":"a:/b","id":"abcdefgh","secretHash":"`+hash+`","expiresAt":"2026-01-02T03:04:05Z"}`), p) != nil || !p.ExpiresAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("it ends at %v", p.ExpiresAt)
	}
	if got := ahp.FindRefusedNames([]byte(`{"names":["ann","bob"]}`)); !cmp.Equal(got, []string{"ann", "bob"}) {
		t.Errorf("refused are %q", got)
	}
	if got := ahp.FindRefusedNames([]byte(`["ann"]`)); got != nil {
		t.Errorf("refused are %q", got)
	}
}

// The marker says whether a host shows each terminal only to its audience.
func TestMarkerOfAudiences(t *testing.T) {
	m := ahp.NewClientTerminals(0)
	m.Audiences, m.Shares = &ahp.Audiences{Version: 1, Owner: "ann"}, true
	got, ok := ahp.FindClientTerminals(ahp.InitializeResult{Meta: m.Meta()})
	if !ok || !got.KeepsAudiences() || got.Audiences.Owner != "ann" || !got.Shares {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, text := range []string{`{"version":1}`, `{"version":1,"audiences":{"version":2}}`, `{"version":1,"audiences":null}`} {
		if got, _ := ahp.FindClientTerminals(ahp.InitializeResult{Meta: ahp.Meta{ahp.MarkerKey: json.RawMessage(text)}}); got.KeepsAudiences() {
			t.Errorf("%s: it keeps audiences", text)
		}
	}
}
