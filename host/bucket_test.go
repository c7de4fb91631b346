package host_test

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/host/share"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// bucket is a document that all nodes share, which can be out of reach for changes.
type bucket[T any] struct {
	mu          sync.Mutex
	all         []T
	moved, away bool
}

var errAway = errors.New("the bucket is not reached")

func (b *bucket[T]) change(do func([]T) ([]T, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return errAway
	}
	all, err := do(slices.Clone(b.all))
	if err == nil {
		b.all, b.moved = all, true
	}
	return err
}

// reached sets whether changes reach the bucket.
func (b *bucket[T]) reached(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = !is
}

func (b *bucket[T]) Moved() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.moved
}

func (b *bucket[T]) Kept() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moved = false
	return slices.Clone(b.all)
}

// touch makes the host look at the bucket.
func (b *bucket[T]) touch() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moved = true
}

// loginBucket implements rights.SharedLogins. Links stay at this node.
type loginBucket struct{ bucket[rights.Login] }

func (b *loginBucket) Keep(one rights.Login) error {
	return b.change(func(all []rights.Login) ([]rights.Login, error) { return append(all, one), nil })
}

func (b *loginBucket) Drop(cookie [sha256.Size]byte) error {
	return b.change(func(all []rights.Login) ([]rights.Login, error) {
		return slices.DeleteFunc(all, func(l rights.Login) bool { return l.Cookie == cookie }), nil
	})
}

func (b *loginBucket) Of(token [sha256.Size]byte, name string) (rights.Principal, bool) {
	for _, l := range b.Kept() {
		if l.Token == token && l.Principal.Name == name {
			return l.Principal, true
		}
	}
	return rights.Principal{}, false
}

func (b *loginBucket) KeepLink(rights.Login) (bool, error) { return false, nil }

func (b *loginBucket) UseLink([sha256.Size]byte) (rights.Login, bool, error) {
	return rights.Login{}, false, nil
}

// A browser that is logged out while the bucket is out of reach stays so, and is logged
// out at all nodes once the bucket is back.
func TestLogoutWithoutTheBucket(t *testing.T) {
	kept := &loginBucket{}
	h, url := serve(t, host.Options{Token: secret, Logins: kept, Nodes: &engine{}})
	cookie := launchedAs(t, h, url, rights.Principal{Role: rights.RoleAdmin})
	kept.reached(false)
	if r, _ := ask(t, url, visit{method: http.MethodPost, path: "/logout", cookie: cookie}); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("logout: %d", r.StatusCode)
	}
	for range 2 { // after the second look, the first one has had its effect
		kept.touch()
		testkit.Eventually(t, patience, "the host looks", func() bool { return !kept.Moved() })
	}
	if r, _ := ask(t, url, visit{path: "/people/entries", cookie: cookie}); r.StatusCode == http.StatusOK {
		t.Error("the browser is logged in again")
	}
	kept.reached(true)
	testkit.Eventually(t, patience, "the bucket has no login any more", func() bool { return len(kept.Kept()) == 0 })
}

// shareBucket implements share.Store.
type shareBucket struct{ bucket[share.Link] }

func (b *shareBucket) Change(do func([]share.Link) []share.Link) error {
	return b.change(func(all []share.Link) ([]share.Link, error) { return do(all), nil })
}

// A link that ends while the bucket is out of reach ends at all nodes once it is back;
// and a link for one browser lets nobody in whom the other nodes do not know, nor two.
func TestLinksWithoutTheBucket(t *testing.T) {
	kept := &shareBucket{}
	_, url := serve(t, host.Options{Token: secret, ShareURL: "https://host.example/s/#", Shares: kept, Nodes: &engine{}})
	machine := dial(t, url+"?tkn="+secret, "laptop", viewOptions{})
	machine.create(uri)
	const onceID = "bcdefghi"
	for id, once := range map[string]bool{shareID: false, onceID: true} {
		must.Do(t, machine.shares(uri, id, once, time.Now().Add(time.Hour)))
	}
	opens := func(id string) bool {
		text, _ := linkSecret()
		_, status, _, _ := openLink(t, url, id, text, nil)
		return status == http.StatusOK
	}
	kept.reached(false)
	if opens(onceID) {
		t.Error("a link for one browser admits a guest of whom other nodes do not hear")
	}
	must.Do(t, machine.call(ahp.MethodUnshare, ahp.UnshareParams{Channel: uri, ID: shareID}, nil))
	kept.reached(true)
	testkit.Eventually(t, patience, "the link has ended in the bucket, too", func() bool {
		return !slices.ContainsFunc(kept.Kept(), func(s share.Link) bool { return s.ID == shareID })
	})
	if err := kept.Change(func(all []share.Link) []share.Link { // at another node
		i := slices.IndexFunc(all, func(s share.Link) bool { return s.ID == onceID })
		all[i].Guests = [][sha256.Size]byte{{1}}
		return all
	}); err != nil {
		t.Fatal(err)
	}
	if opens(onceID) {
		t.Error("a link for one browser was opened at two nodes")
	}
	if err := machine.shares(uri, shareID, false, time.Now().Add(time.Hour)); err != nil || !opens(shareID) {
		t.Errorf("the next link does not work: %v", err)
	}
}
