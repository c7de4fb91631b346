package local_test

import (
	"context"
	"errors"
	"testing"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// A link at a host of the client's own ends with the request, or the request with the
// link; nothing is lent to that host afterwards.
func TestShareHere(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("build")
	here := func(agents bool) localapi.ShareRequest {
		return localapi.ShareRequest{Here: &localapi.PrivateHost{URL: "ws://127.0.0.1:9", Token: "t", Agents: agents}}
	}
	left := func() bool {
		w.daemon.mu.Lock()
		defer w.daemon.mu.Unlock()
		return len(w.daemon.asked) > 0 && w.daemon.asked[len(w.daemon.asked)-1] == "left ws://127.0.0.1:9"
	}
	made, wait, err := w.client.ShareHere(t.Context(), "build", here(false))
	if err != nil || !made.GuestsOnly || !made.Loopback || made.Link == "" {
		t.Fatalf("%+v, %v", made.Share, err)
	}
	check.OK(t, w.client.Unshare(t.Context(), made.ID))
	if err := wait(); err != nil || !left() {
		t.Errorf("after the end of the link: %v, left %v", err, left())
	}

	ctx, cancel := context.WithCancel(t.Context())
	made, wait, err = w.client.ShareHere(ctx, "build", here(true))
	if err != nil || made.GuestsOnly {
		t.Fatalf("for agents: %+v, %v", made.Share, err)
	}
	cancel()
	if err := wait(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	testkit.Eventually(t, patience, "the end of the link", left)

	r := here(false)
	r.Host = "lab"
	if _, _, err := w.client.ShareHere(t.Context(), "build", r); err == nil {
		t.Error("here and a host were taken together")
	}
	if _, _, err := w.client.As("somebody").ShareHere(t.Context(), "build", here(false)); err == nil {
		t.Error("an agent shares")
	}
	_, wait, err = w.client.ShareHere(t.Context(), "build", here(false))
	must.Do(t, err)
	w.server.Drain()
	if err := wait(); !errors.Is(err, localclient.ErrDropped) || !left() {
		t.Errorf("after the end of the daemon: %v", err)
	}
}

// Without a host, a refused link names the way that needs none.
func TestShareWithoutAHost(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("build")
	_, err := w.client.Share(t.Context(), "build", localapi.ShareRequest{})
	var e *localapi.Error
	if !errors.As(err, &e) || e.Code != localapi.CodeNotPaired || e.Hint != "pair with one: tether pair URL; or share it without a host: tether share ID --here" {
		t.Errorf("%+v", e)
	}
}
