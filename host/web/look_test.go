package web_test

import (
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// rect is the place of an element on the page, in CSS pixels, which equal the pixels of a
// picture.
type rect struct{ X, Y, Width, Height int }

// ink returns the difference between the darkest and the lightest pixel of a part of the
// page, from 0 to 65535.
func (b *browser) ink(where rect) int {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "page.png")
	b.do("shot", args{"path": path}, nil)
	f := must.Get(os.Open(path))(b.t)
	defer f.Close()
	picture := must.Get(png.Decode(f))(b.t)
	darkest, lightest := 65535, 0
	for y := where.Y; y < where.Y+where.Height; y++ {
		for x := where.X; x < where.X+where.Width; x++ {
			c := int(color.Gray16Model.Convert(picture.At(x, y)).(color.Gray16).Y)
			darkest, lightest = min(darkest, c), max(lightest, c)
		}
	}
	return max(0, lightest-darkest)
}

// An underscore is visible on every line of the screen.
func TestPageShowsUnderscores(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	uri := s.lend(s.machine, "laptop", "shell")
	s.act(uri, print("\x1b[?25l"))
	for row := range 20 {
		s.act(uri, print(fmt.Sprintf("\r\n____ row %d", row)))
	}
	for _, dark := range []bool{false, true} {
		b.do("open", args{"dark": dark}, nil)
		s.login(b)
		s.choose(b, "shell")
		b.wait("tetherPage.screen().includes('____ row 19') && tetherPage.waiting() === 0 && document.querySelector('.xterm-rows').innerText.includes('row 19')")
		var rows []rect
		b.do("eval", args{"js": `[...document.querySelectorAll(".xterm-rows > div")].filter(e => e.textContent.startsWith("____")).map(e => {
			const r = e.getBoundingClientRect(), cell = document.querySelector(".xterm-screen").clientWidth / 80;
			return {x: Math.ceil(r.x), y: Math.ceil(r.y), width: Math.floor(4 * cell), height: Math.floor(r.height)};
		})`}, &rows)
		if len(rows) != 20 {
			t.Fatalf("%d rows with underscores are drawn", len(rows))
		}
		for i, r := range rows {
			if ink := b.ink(r); ink < 65535/4 {
				t.Errorf("dark %v: the underscores of row %d, at %+v, differ from their background by %d of 65535", dark, i, r, ink)
			}
		}
	}
}

// contrasts finds text that is hard to read: [contrast, text, colours] of each element of
// a selector that is below 4.5 (WCAG AA).
const contrasts = `(selector => {
	const rgb = s => (s.match(/[\d.]+/g) ?? []).map(Number);
	const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3) return c; } return [255, 255, 255]; };
	const bad = [];
	let seen = 0;
	for (const e of document.querySelectorAll(selector)) {
		if (!e.textContent.trim() || !e.getClientRects().length) continue;
		seen++;
		const ink = rgb(getComputedStyle(e).color), on = ground(e), [a, b] = [light(ink.slice(0, 3)), light(on)];
		const is = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (is < 4.5) bad.push(is.toFixed(2) + " " + e.textContent.slice(0, 30) + " rgb(" + ink + ") on rgb(" + on + ")");
	}
	return {seen, bad};
})`

// All text is readable in both themes: states of chosen rows, all 16 colours, and inverse
// text, on the screen and in commands.
func TestPageHasContrast(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	shell := s.lend(s.machine, "laptop", "shell")
	one, zero := int64(1), int64(0)
	for name, code := range map[string]*int64{"good": &zero, "failed": &one, "gone": nil} {
		s.act(s.lend(s.machine, "laptop", name), ahp.TerminalExited{ExitCode: code})
	}
	desktop := s.join("desktop")
	s.lend(desktop, "desktop", "away")
	desktop.Close()
	var colours strings.Builder
	for n := range 16 {
		code := 30 + n
		if n > 7 {
			code = 82 + n
		}
		fmt.Fprintf(&colours, "\x1b[%dmcolour%d\x1b[0m \x1b[%d;7minverse%d\x1b[0m \x1b[7;1mbold%d\x1b[0m\r\n", code, n, code, n, n)
	}
	colours.WriteString("\x1b[7mplain inverse\x1b[0m \x1b[38;5;90mmagenta\x1b[0m \x1b[38;2;90;0;90mdark\x1b[0m\r\n")
	s.act(shell, ahp.TerminalCommandDetectionAvailable{})
	s.act(shell, command("1", "colours", colours.String(), 0, 3)...)
	s.act(shell, print("a.c:1:1: error: no\r\nb.c:2:2: warning: maybe not\r\n"))
	for _, dark := range []bool{false, true} {
		b.do("open", args{"dark": dark}, nil)
		look := func(selector string, least int) {
			t.Helper()
			var got struct {
				Seen int
				Bad  []string
			}
			b.do("eval", args{"js": contrasts + "(" + quote(selector) + ")"}, &got)
			if got.Seen < least {
				t.Errorf("dark %v: %d of %s were there, want %d", dark, got.Seen, selector, least)
			}
			for _, bad := range got.Bad {
				t.Errorf("dark %v: %s: contrast %s", dark, selector, bad)
			}
		}
		b.do("goto", args{"url": s.server.URL}, nil)
		look("main, h1, h1 span, p, code, label, input, button", 6)
		s.login(b)
		b.wait("document.querySelectorAll('nav a').length === 5")
		look("#empty *", 3)
		for _, name := range []string{"away", "good", "failed", "gone", "shell"} {
			s.choose(b, name)
			look("aside *, #view > header *", 20)
		}
		b.wait("document.querySelector('.xterm-rows').innerText.includes('plain inverse')")
		look(".xterm-rows span", 40)
		b.do("key", args{"key": "c"}, nil)
		b.wait("document.querySelector('.block pre')?.innerText.includes('plain inverse')")
		look("#commands *", 40)
		b.do("key", args{"key": "p"}, nil)
		b.wait("document.querySelectorAll('.problem').length === 2")
		look("#problems *", 8)
		b.shot(fmt.Sprintf("14-colours-dark-%v", dark))
		b.do("goto", args{"url": s.server.URL + "/plain"}, nil)
		look("body *", 10)
		b.shot(fmt.Sprintf("12-plain-dark-%v", dark))
	}
}

func quote(s string) string {
	text, _ := json.Marshal(s) // a string can be encoded
	return string(text)
}

// Names of any length leave the page as wide as the window, and the terminal's scroll bar
// at the window's edge.
func TestPageWithLongNames(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	long := strings.Repeat("a-very-long-name-", 9)
	uri := s.lendAs(s.machine, "laptop", "long", long)
	s.act(uri, ahp.TerminalTitleChanged{Title: strings.Repeat("title", 40)}, print(strings.Repeat("line\r\n", 200)))
	s.lendAs(s.join(long), long, "long", long)
	for _, width := range []int{390, 1280} {
		b.do("open", args{"width": width, "height": 780}, nil)
		s.login(b)
		b.wait("document.querySelectorAll('nav a').length === 2")
		narrow := func(where string) {
			t.Helper()
			var wide []string
			b.do("eval", args{"js": fmt.Sprintf(`[...document.querySelectorAll("body, aside, aside *, #empty, #empty *, #view > header, #view > header *")].filter(e => e.getClientRects().length &&
				e.getBoundingClientRect().right > %d + .5 && getComputedStyle(e).display !== "inline" && !e.closest(".what h2 *")).map(e => e.tagName + "." + e.className + " " + e.getBoundingClientRect().right)`, width)}, &wide)
			if len(wide) > 0 || b.text("String(document.documentElement.scrollWidth)") != fmt.Sprint(width) {
				t.Errorf("%s is wider than %d: %v", where, width, wide)
			}
		}
		narrow("the list")
		b.shot(fmt.Sprintf("15-long-list-%d", width))
		b.do("eval", args{"js": "[...document.querySelectorAll('nav section')].at(-1).querySelector('a').click()"}, nil)
		b.do("key", args{"key": "s"}, nil)
		b.wait("tetherPage.screen().includes('line')")
		narrow("the terminal")
		b.shot(fmt.Sprintf("15-long-terminal-%d", width))
		var bar, edge float64
		b.do("eval", args{"js": "document.querySelector('.xterm .scrollbar.vertical').getBoundingClientRect().right"}, &bar)
		b.do("eval", args{"js": "document.querySelector('#screen').getBoundingClientRect().right"}, &edge)
		if edge-bar > 20 {
			t.Errorf("%d wide: the scroll bar is at %.0f, the screen ends at %.0f", width, bar, edge)
		}
	}
}

// lendLater lends a terminal and waits until the next one will be newer: the list
// compares milliseconds.
func (s *site) lendLater(c *client.Conn, machine, name string) string {
	s.t.Helper()
	uri := s.lend(c, machine, name)
	made := time.Now().UnixMilli()
	testkit.Eventually(s.t, testkit.Patience, "the next millisecond", func() bool { return time.Now().UnixMilli() > made })
	return uri
}

// The list shows running terminals before exited ones, the newest first, and does not
// change when a machine reconnects. Exited terminals are folded until they are unfolded
// or searched for.
func TestPageOrdersTheList(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	zero := int64(0)
	var uris []string
	for _, name := range []string{"first", "done", "second", "third"} {
		uris = append(uris, s.lendLater(s.machine, "laptop", name))
	}
	s.act(uris[1], ahp.TerminalExited{ExitCode: &zero})
	desktop := s.join("desktop")
	for _, name := range []string{"zebra", "ant", "yak"} {
		s.lendLater(desktop, "desktop", name)
	}
	b.do("open", nil, nil)
	s.login(b)
	shown := "[...document.querySelectorAll('#list a, #list summary')].filter(e => e.checkVisibility()).map(e => (e.querySelector('.name') ?? e).textContent).join()"
	listed := func(want string) {
		t.Helper()
		b.wait(shown + " === " + quote(want))
	}
	listed("yak,ant,zebra,third,second,first,1 exited")
	b.shot("16-list-order")
	offered := "[...document.querySelectorAll('#offers b')].map(e => e.textContent).join()"
	b.wait(offered + " === 'desktop/yak,desktop/ant,desktop/zebra,laptop/third,laptop/second,laptop/first'")
	desktop.Close()
	b.wait("document.querySelector('#list').innerText.includes('machine offline')")
	listed("yak,ant,zebra,third,second,first,1 exited")
	b.wait(offered + " === 'laptop/third,laptop/second,laptop/first'")
	s.act(uris[3], ahp.TerminalExited{ExitCode: &zero})
	listed("yak,ant,zebra,second,first,2 exited")
	b.do("click", args{"selector": "#filter"}, nil)
	b.do("type", args{"text": "don"}, nil)
	listed("1 exited,done")
	b.do("key", args{"key": "Escape"}, nil)
	listed("yak,ant,zebra,second,first,2 exited")
	b.do("eval", args{"js": "[...document.querySelectorAll('#list summary')].find(e => e.checkVisibility()).click()"}, nil)
	listed("yak,ant,zebra,second,first,2 exited,third,done")
	b.do("reload", nil, nil)
	listed("yak,ant,zebra,second,first,2 exited")
	b.clean(s.server.URL)
}

// Tab stops once in the list, wherever the focus was; arrow keys reach every row.
func TestPageListIsOneTabStop(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	zero := int64(0)
	for n := range 30 {
		uri := s.lendLater(s.machine, "laptop", fmt.Sprintf("terminal-%02d", n))
		if n < 10 {
			s.act(uri, ahp.TerminalExited{ExitCode: &zero})
		}
	}
	b.do("open", nil, nil)
	s.login(b)
	b.wait("document.querySelectorAll('#list a').length === 30")
	where := "(e => e.id.startsWith('row-') ? e.querySelector('.name').textContent : e.tagName === 'SUMMARY' ? 'exited' : e.id || e.textContent.trim())(document.activeElement)"
	tab := func(key string, times int) (at []string) {
		t.Helper()
		for range times {
			b.do("key", args{"key": key}, nil)
			at = append(at, b.text(where))
		}
		return at
	}
	b.do("click", args{"selector": "#filter"}, nil)
	if got := tab("Tab", 2); !slices.Equal(got, []string{"terminal-29", "theme"}) {
		t.Errorf("from the filter, Tab goes to %v", got)
	}
	tab("Shift+Tab", 1)
	if got := tab("ArrowDown", 20); got[0] != "terminal-28" || got[18] != "terminal-10" || got[19] != "exited" {
		t.Errorf("down from the first: %v", got)
	}
	b.do("key", args{"key": "Enter"}, nil)
	b.wait("document.querySelector('#list details').open")
	if got := tab("ArrowDown", 10); got[0] != "terminal-09" || got[9] != "terminal-00" {
		t.Errorf("down into the exited ones: %v", got)
	}
	if got := tab("ArrowUp", 3); got[2] != "terminal-03" {
		t.Errorf("up: %v", got)
	}
	if got := append(tab("Tab", 1), tab("Shift+Tab", 1)...); !slices.Equal(got, []string{"theme", "terminal-03"}) {
		t.Errorf("out and back: %v", got)
	}
	b.do("key", args{"key": "Enter"}, nil)
	b.wait("document.querySelector('#name').textContent === 'terminal-03'")
	b.clean(s.server.URL)
}
