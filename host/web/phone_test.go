package web_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// On a phone, a tablet and a desktop no page is wider than its window. On a phone, what a
// finger touches is at least 40 pixels high and wide, text is not smaller than 12 pixels,
// and a field not smaller than 16, because a phone zooms into smaller ones.
func TestPageFitsAPhone(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{Register: &register{}, People: &team{roster: &rights.Roster{}}})
	zero, two := int64(0), int64(2)
	for n := range 2 {
		s.act(s.lend(s.machine, "laptop", fmt.Sprintf("done-%d", n)), ahp.TerminalExited{ExitCode: &zero})
	}
	s.act(s.lend(s.machine, "laptop", "tests"), print("2 failing\r\n"), ahp.TerminalExited{ExitCode: &two})
	dev := s.lend(s.machine, "laptop", "dev-server")
	must.Do(t, s.machine.Peer().SendRaw(t.Context(), ahp.AppendState(nil, ahp.StateParams{Channel: dev, Input: ahp.InputRunning,
		Checkout: vocab.Checkout{Repository: "/home/me/shop", Worktree: "/home/me/login", Branch: "feat/login", Commit: "3f2a91c0aa"}})))
	s.act(dev, ahp.TerminalCommandDetectionAvailable{}, print("ready\r\nmain.c:3:5: error: no such type\r\n"))
	s.act(dev, command("1", "make test "+strings.Repeat("some-target ", 20), "FAIL cart_test.go:17\r\n"+strings.Repeat("a long line ", 30)+"\r\n", 1, 1500)...)
	const touched = `(touch => {
		const bad = [];
		for (const e of document.querySelectorAll("a, button, input, summary")) {
			if (!e.checkVisibility() || e.closest(".xterm, p")) continue;
			const r = e.getBoundingClientRect(), size = parseFloat(getComputedStyle(e).fontSize);
			if (r.height < 40 || r.width < 40) bad.push(e.tagName + "#" + e.id + " " + e.textContent.trim().slice(0, 20) + " " + r.width.toFixed() + "x" + r.height.toFixed());
			if (e.tagName === "INPUT" && size < 16) bad.push(e.id + " has a font of " + size);
		}
		for (const e of document.querySelectorAll("body *"))
			if (e.checkVisibility() && !e.closest(".xterm") && e.childNodes.length && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && parseFloat(getComputedStyle(e).fontSize) < 12) bad.push(e.textContent.slice(0, 20) + " is small");
		return bad;
	})()`
	for _, size := range [][2]int{{360, 740}, {768, 1024}, {1400, 900}} {
		look := func(name string) {
			t.Helper()
			b.shot(fmt.Sprintf("18-%s-%d", name, size[0]))
			var width int
			b.do("eval", args{"js": "document.documentElement.scrollWidth"}, &width)
			if width > size[0] {
				t.Errorf("%s: the page is %d wide in a window of %d", name, width, size[0])
			}
			if size[0] > 400 {
				return
			}
			var bad []string
			b.do("eval", args{"js": touched}, &bad)
			for _, one := range bad {
				t.Errorf("%s: %s", name, one)
			}
		}
		b.do("open", args{"width": size[0], "height": size[1]}, nil)
		b.do("goto", args{"url": s.server.URL}, nil)
		look("login")
		s.login(b)
		b.wait("document.querySelectorAll('nav a').length === 4 && document.querySelector('nav').innerText.includes('@')")
		if got := b.text("[...document.querySelectorAll('#list a, #list summary')].filter(e => e.checkVisibility()).map(e => (e.querySelector('.name') ?? e).textContent).join()"); got != "dev-server · feat/login@3f2a91c,tests,2 exited, 1 failed" {
			t.Errorf("the list shows %q", got)
		}
		look("list")
		b.do("eval", args{"js": "document.querySelector('nav a').click()"}, nil)
		b.wait("tetherPage.screen().includes('FAIL')")
		for key, tab := range map[string]string{"s": "screen", "t": "text", "c": "commands", "p": "problems"} {
			b.do("key", args{"key": key}, nil)
			b.wait("document.querySelector('#" + tab + "').checkVisibility() && document.querySelector('#" + tab + "').textContent.trim() !== ''")
			look(tab)
		}
		b.do("key", args{"key": "?"}, nil)
		look("keys")
		for _, path := range []string{"/people", "/plain"} {
			b.do("goto", args{"url": s.server.URL + path}, nil)
			b.wait("document.querySelector('h1') && !document.body.innerText.includes('loading…')")
			look(path[1:])
		}
	}
	b.clean(s.server.URL)
}
