package ahp_test

import (
	"errors"
	"strings"
	"testing"

	"tether/ahp"
)

func TestNegotiate(t *testing.T) {
	tests := map[string]struct {
		offered []string
		want    string
	}{
		"ours":                          {ahp.Versions(), "1.0.0"},
		"highest whatever the order":    {[]string{"0.7.0", "1.0.0", "0.9.0"}, "1.0.0"},
		"newer minor of 1":              {[]string{"1.0.0", "1.1.0"}, "1.1.0"},
		"far minor, compared as number": {[]string{"1.9.0", "1.10.3"}, "1.10.3"},
		"newer patch of 0.9":            {[]string{"0.9.7", "0.9.1"}, "0.9.7"},
		"VS Code 1.131":                 {[]string{"0.7.0"}, "0.7.0"},
		"too new passed over":           {[]string{"2.0.0", "0.8.0"}, "0.8.0"},
		"too old passed over":           {[]string{"0.6.0", "0.5.2", "0.7.3"}, "0.7.3"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ahp.Negotiate(tt.offered)
			if err != nil || got != tt.want {
				t.Errorf("Negotiate(%v) = %q, %v, want %q", tt.offered, got, err, tt.want)
			}
		})
	}
}

func TestNegotiateFindsNone(t *testing.T) {
	for _, offered := range [][]string{nil, {"0.6.0"}, {"2.0.0", "0.10.0", "0.1.0"}} {
		_, err := ahp.Negotiate(offered)
		var none *ahp.VersionError
		if !errors.As(err, &none) {
			t.Errorf("Negotiate(%v): %v, want a *VersionError", offered, err)
			continue
		}
		const want = `{"supportedVersions":["1.0.0","0.9.0","0.8.0","0.7.0"]}`
		if got := string(none.Data()); got != want {
			t.Errorf("data %s, want %s", got, want)
		}
	}
	_, err := ahp.Negotiate([]string{"0.6.0"})
	const want = "no common protocol version: offered 0.6.0, supported 1.0.0, 0.9.0, 0.8.0, 0.7.0"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestNegotiateRefusesMalformed(t *testing.T) {
	for _, s := range []string{"", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.0-rc1", "1.0.0 ", "v1.0.0", "1.-1.0", "1.+1.0", "^1.0.0",
		"1.0.99999999999", strings.Repeat("1", 1000) + ".0.0"} {
		_, err := ahp.Negotiate([]string{"1.0.0", s})
		if err == nil || !strings.Contains(err.Error(), "want MAJOR.MINOR.PATCH") || len(err.Error()) > 120 {
			t.Errorf("an offer with %.40q: error %v, want a short one that says the form", s, err)
		}
	}
	many := make([]string, ahp.MaxVersions+1)
	if _, err := ahp.Negotiate(many); err == nil || err.Error() != "protocolVersions has 65 entries, at most 64 are allowed" {
		t.Errorf("too many: %v", err)
	}
}

func TestHasLifecycle(t *testing.T) {
	for version, want := range map[string]bool{"0.7.0": false, "0.8.0": false, "0.8.99": false, "0.9.0": true, "0.9.1": true,
		"1.0.0": true, "1.1.0": true, "": true, "next": true} {
		if got := ahp.HasLifecycle(version); got != want {
			t.Errorf("HasLifecycle(%q) = %v, want %v", version, got, want)
		}
	}
}

func TestIsGone(t *testing.T) {
	for code, want := range map[int64]bool{-32001: true, -32008: true, -32602: false, 0: false} {
		if got := ahp.IsGone(code); got != want {
			t.Errorf("IsGone(%d) = %v, want %v", code, got, want)
		}
	}
}
