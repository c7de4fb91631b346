package web_test

import (
	"context"
	"strings"
	"testing"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// The page lists the earlier runs of a terminal and marks beside its name whether it is
// good or failing, also on a phone. What a machine says of them is text alone.
func TestPageShowsRuns(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	near, far := testkit.Channels()
	go func() { _ = s.owner.ServeChannel(context.Background(), far) }() // ends with the host
	c := must.Get(client.ConnectChannel(t.Context(), near, client.Options{ClientID: "tower-client", Info: ahp.Implementation{Name: "test", Title: "tower"}, Meta: ahp.ClientMarker{Runs: true}.Meta(),
		OnRequest: func(r *jsonrpc.Request) {
			answer := `{"runs":[{"id":"pty-a.3","name":"build","command":"go test ./... <b>x</b>","cwd":"/src","checkout":{"repository":"/src","worktree":"/src","branch":"main","commit":"3f2a91c0000000000000000000000000000000ff"},"started":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:15Z","outcome":"failing","why":"exit status 1","exitCode":1,"errors":2,"first":["a_test.go:7: error: want 1"],"bytes":700},
				{"id":"pty-a.2","command":"go test ./...","started":"2026-01-02T02:04:05Z","outcome":"good","bytes":70}]}`
			if strings.Contains(string(r.Params), `"verdict"`) {
				answer = `{"series":[{"command":"go test ./...","cwd":"/src","verdict":"failing","since":"2026-01-02T03:04:05Z","newest":{"run":"pty-a.3","at":"2026-01-02T03:04:05Z","why":"exit status 1"},"good":{"run":"pty-a.2","at":"2026-01-02T02:04:05Z","commit":"8c01d4e00000"},"failing":{"run":"pty-a.3","at":"2026-01-02T03:04:05Z","commit":"3f2a91c00000"},"untried":2}]}`
			}
			_ = r.Reply(ahp.RunsResult{Answer: []byte(answer)})
		}}))(t)
	t.Cleanup(c.Close)
	s.lend(c, "tower", "build")
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "build")
	b.wait("document.querySelector('#verdict').innerText === '✗ failing'")
	b.do("key", args{"key": "r"}, nil)
	b.wait("document.querySelectorAll('.run').length === 2")
	text := b.text("document.querySelector('#runs').innerText")
	for _, want := range []string{"go test ./... <b>x</b>", "exit status 1", "2 errors", "main@3f2a91c", "a_test.go:7: error: want 1", "Last good at 8c01d4e00000", "2 commits between them were not run"} {
		if !strings.Contains(text, want) {
			t.Errorf("the runs have no %q:\n%s", want, text)
		}
	}
	b.shot("runs")
	b.do("open", phone, nil)
	s.login(b)
	s.choose(b, "build")
	b.wait("document.querySelector('#verdict').innerText === '✗ failing'")
	b.do("eval", args{"js": "document.querySelector('#verdict').click()"}, nil)
	b.wait("document.querySelectorAll('.run').length === 2 && document.documentElement.scrollWidth <= innerWidth")
	b.wait("['#tab-runs', '#verdict'].every(e => { const r = document.querySelector(e).getBoundingClientRect(); return r.right <= innerWidth && r.height >= 40 && r.width >= 40; })")
	b.shot("runs-phone")
}
