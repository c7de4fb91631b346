package host_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
)

// memory is a rights.Owners with contents visible to tests.
type memory struct {
	mu   sync.Mutex
	of   map[string]string
	fail error
}

func (m *memory) Owner(id string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.of[id]
	return p, ok
}

func (m *memory) Own(id, p string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return true, m.fail
	}
	if m.of[id] == "" {
		m.of[id] = p
	}
	return m.of[id] == p, nil
}

// A host that was started anew knows whose a clientId is before its owner comes back.
func TestForgedClientIDAfterARestart(t *testing.T) {
	testkit.Leaks(t)
	owners := &memory{of: map[string]string{}}
	access := newUsers("machine-laptop", "machine-thief", "observer-ann", "admin-root")
	o := host.Options{Access: access, Owners: owners, Token: secret}
	_, url := serve(t, o)
	as(t, url, "machine-laptop", "laptop-id", viewOptions{resume: true}).create(uri)
	as(t, url, "machine-laptop", "watching", viewOptions{})

	_, url = serve(t, o)
	for _, token := range []string{"machine-thief", "observer-ann", "admin-root", secret} {
		v := as(t, url, token, "laptop-id", viewOptions{noInit: true})
		p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: "laptop-id"}
		if got := code(v.call(ahp.MethodInitialize, p, nil)); got != int64(ahp.CodePermissionDenied) {
			t.Errorf("%s as the laptop: code %d", token, got)
		}
		if got := code(v.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "laptop-id"}, nil)); got != int64(ahp.CodeNotFound) {
			t.Errorf("%s goes on as the laptop: code %d", token, got)
		}
	}
	as(t, url, "machine-laptop", "laptop-id", viewOptions{resume: true}).create(uri)
	as(t, url, "observer-ann", "watching", viewOptions{}) // nothing was lent as that: it is free
	owners.mu.Lock()
	defer owners.mu.Unlock()
	if got, want := len(owners.of), 1; got != want {
		t.Errorf("%d ids are kept, want %d: %v", got, want, owners.of)
	}
}

// An owner that cannot be kept is one until the host ends.
func TestOwnersThatCannotBeKept(t *testing.T) {
	testkit.Leaks(t)
	var log testkit.Output
	logger := zerolog.New(&log)
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "machine-thief"), Owners: &memory{fail: errors.New("disk full")}, Logger: &logger})
	as(t, url, "machine-laptop", "laptop-id", viewOptions{resume: true}).create(uri)
	if !strings.Contains(log.String(), "disk full") {
		t.Errorf("nothing is said of it: %s", log.String())
	}
	v := as(t, url, "machine-thief", "laptop-id", viewOptions{noInit: true})
	p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: "laptop-id"}
	if got := code(v.call(ahp.MethodInitialize, p, nil)); got != int64(ahp.CodePermissionDenied) {
		t.Errorf("the thief as the laptop: code %d", got)
	}
}

// taken is a rights.Owners for which an id belongs to another principal by the time it is
// requested.
type taken struct{}

func (taken) Owner(string) (string, bool)      { return "", false }
func (taken) Own(string, string) (bool, error) { return false, nil }

// A client refused because its clientId belongs to another principal is refused the next
// time, too.
func TestAnotherOnesIDStaysRefused(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop"), Owners: taken{}})
	v := as(t, url, "machine-laptop", "laptop-id", viewOptions{})
	for i := range 2 {
		if got := code(v.call(ahp.MethodCreateTerminal, clientTerminal(uri, v.id), nil)); got != int64(ahp.CodePermissionDenied) {
			t.Errorf("terminal %d: code %d", i, got)
		}
	}
}
