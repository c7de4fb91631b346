package agent_test

import (
	"errors"
	"fmt"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/local"
	"tether/internal/testkit"
)

// A host may have several addresses: they are kept, and another host's is refused by its key. One that nobody answers at is kept, too.
func TestPairingWithSeveralAddresses(t *testing.T) {
	d, k, stranger := home(t), startKeyHost(t), startKeyHost(t)
	a := start(t, agent.Config{Dirs: d})
	to, err := url.Parse(strings.Replace(k.url, "ws", "http", 1))
	if err != nil {
		t.Fatal(err)
	}
	second := serveHTTP(t, httputil.NewSingleHostReverseProxy(to))
	silent := fmt.Sprintf("ws://127.0.0.1:%d", testkit.FreePort(t))
	token := func(name string) string {
		t.Helper()
		once, _, err := k.tokens.CreatePairing(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		return once
	}
	_, err = a.client.Pair(t.Context(), local.PairRequest{URL: k.url, Also: []string{stranger.url}, Token: token("one")})
	if why, ok := errors.AsType[*local.Error](err); !ok || why.Code != local.CodeRefused || !strings.Contains(why.Message, "is another host") {
		t.Errorf("with the address of another host: %v", err)
	}
	_, err = a.client.Pair(t.Context(), local.PairRequest{URL: k.url, Also: []string{"ws://example.org"}, Token: "x"})
	if why, ok := errors.AsType[*local.Error](err); !ok || why.Code != local.CodeInsecure {
		t.Errorf("with an address in clear text: %v", err)
	}
	h, err := a.client.Pair(t.Context(), local.PairRequest{URL: k.url, Also: []string{second, silent, second, k.url}, Token: token("two")})
	if err != nil || !slices.Equal(h.Also, []string{second, silent}) {
		t.Fatalf("%+v, %v", h, err)
	}
	a.state("it is linked", "online")
}
