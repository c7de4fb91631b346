package loopback_test

import (
	"testing"

	"tether/internal/loopback"
)

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.example.com": false, "0.0.0.0": false, "::": false, "10.0.0.1": false, "[::1]": false, "127.1": false,
	} {
		if loopback.Is(host) != want {
			t.Errorf("%q: %v, want %v", host, !want, want)
		}
	}
}
