package local_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// The link is told once: neither a list nor the terminal has its secret, and the loan has
// its hash alone.
func TestShare(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true}}
	ctx := t.Context()
	w.spawn("build")
	got, err := w.client.Share(ctx, "build", localapi.ShareRequest{Once: true})
	if err != nil || !got.Once || !got.GuestsOnly || !got.Loopback || got.Host != "lab" || time.Until(got.Until) > time.Hour {
		t.Fatalf("%+v, %v", got.Share, err)
	}
	id, text, _ := strings.Cut(strings.TrimPrefix(got.Link, "http://127.0.0.1:8090/s/#"), ".")
	secret, err := base64.RawURLEncoding.DecodeString(text)
	if id != got.ID || err != nil || len(secret) != 32 {
		t.Fatal("the link is not base, id and secret")
	}
	all, err := w.client.Shares(ctx)
	if err != nil || len(all) != 1 || all[0].ID != id || !all[0].Once {
		t.Errorf("listed %+v, %v", all, err)
	}
	list, err := w.client.List(ctx)
	shown, _ := json.Marshal([]any{all, list})
	hash := sha256.Sum256(secret)
	if err != nil || strings.Contains(string(shown), text) || strings.Contains(string(shown), hex.EncodeToString(hash[:])) {
		t.Errorf("a list has the secret, %v", err)
	}
	check.OK(t, w.client.Unshare(ctx, id))
	if list, err = w.client.List(ctx); err != nil || len(list.Terminals[0].Loans) > 0 || w.client.Unshare(ctx, id) == nil {
		t.Errorf("after the last link's end: %+v, %v", list.Terminals[0].Loans, err)
	}

	must.Get(w.client.Share(ctx, "build", localapi.ShareRequest{}))(t)
	if got, err := w.client.Lend(ctx, "build", localapi.LendRequest{}); err != nil || got.Loans[0].Audience.GuestsOnly {
		t.Errorf("lent: %+v, %v", got.Loans, err)
	}
	w.daemon.refuses = &localapi.Error{Code: localapi.CodeUnsupportedHost, Message: "takes no links"}
	if _, err := w.client.Share(ctx, "build", localapi.ShareRequest{}); err == nil {
		t.Error("a host that takes none got one")
	}
	w.daemon.refuses = nil
	must.Get(w.client.Unlend(ctx, "build", ""))(t)
	byPort, err := w.client.Share(ctx, "build", localapi.ShareRequest{Port: 3000})
	ports := func() (all []int) {
		for _, h := range w.pool.As(term.User).List() {
			if loan, lent := h.Loan("lab"); lent && loan.Audience.GuestsOnly {
				for _, p := range loan.Ports {
					all = append(all, p.Port)
				}
			}
		}
		return all
	}
	if err != nil || byPort.Port != 3000 || !byPort.GuestsOnly || !slices.Equal(ports(), []int{3000}) {
		t.Errorf("a link for a port: %+v, %v; open are %v", byPort, err, ports())
	}
	must.Get(w.client.Lend(ctx, "build", localapi.LendRequest{}))(t) // the terminal, not the port
	longer := must.Get(w.client.Share(ctx, "build", localapi.ShareRequest{Port: 3000, ForMs: (2 * time.Hour).Milliseconds()}))(t)
	open := func() (all []vocab.LentPort) {
		for _, h := range w.pool.As(term.User).List() {
			loan, _ := h.Loan("lab")
			all = append(all, loan.OpenPorts()...)
		}
		return all
	}
	if all := open(); len(all) != 1 || !all[0].Guests || !all[0].Until.Equal(longer.Until) {
		t.Errorf("two links: open are %+v", all)
	}
	for left, link := range []string{byPort.ID, longer.ID} {
		must.Do(t, w.client.Unshare(ctx, link))
		if all := open(); len(all) != 1-left {
			t.Errorf("%d links have ended: open are %+v", left+1, all)
		}
	}
	for _, port := range []int{-1, 80, 65536} {
		if _, err := w.client.Share(ctx, "build", localapi.ShareRequest{Port: port}); err == nil {
			t.Errorf("a link for port %d was made", port)
		}
	}
	if _, err := w.client.Share(ctx, "build", localapi.ShareRequest{Port: 3000, Here: &localapi.PrivateHost{}}); err == nil {
		t.Error("a link for a port was made at a private host")
	}
	for _, ms := range []int64{-1, (31 * 24 * time.Hour).Milliseconds()} {
		if _, err := w.client.Share(ctx, "build", localapi.ShareRequest{ForMs: ms}); err == nil {
			t.Errorf("%d ms were taken", ms)
		}
	}
	if _, err := w.client.As("somebody").Share(ctx, "build", localapi.ShareRequest{}); err == nil {
		t.Error("an agent shares")
	}
}

func TestSharesSwitchedOff(t *testing.T) {
	w := serve(t, local.Options{NoShares: true}, term.Options{})
	w.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true}}
	w.spawn("build")
	if _, err := w.client.Share(t.Context(), "build", localapi.ShareRequest{}); err == nil || !strings.Contains(err.Error(), "links for guests") {
		t.Error(err)
	}
}
