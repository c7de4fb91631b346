package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// phone is the size of a small one's window.
var phone = args{"width": 360, "height": 740}

const (
	shownText = "document.querySelector('#lines').textContent"
	atEnd     = "(e => e.scrollTop + e.clientHeight > e.scrollHeight - 40)(document.querySelector('#text'))"
)

// Where a terminal is wider than the window, the page shows its text: lines wrapped at
// the window's width, the newest last, problems and the waiting state on top. The person
// may choose the screen, which the tab remembers for that terminal.
func TestPageShowsTextOfAWideTerminal(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	dev, other := s.lend(s.machine, "laptop", "dev-server"), s.lend(s.machine, "laptop", "other")
	long := strings.TrimSpace(strings.Repeat("word ", 60))
	s.act(other, print("the other one\r\n"))
	s.act(dev, print("first\r\n"+long+"\r\n10%\r20%\r\n\x1b[31mred\x1b[0m \x1b[1;38;2;1;2;3mtrue\x1b[0m\r\none\r\ntwo\x1b[A\x1b[2Kuno\x1b[B\r\n"+
		"main.c:3:5: error: no such type\r\nPort 3000 is taken, use another one? "))
	must.Do(t, s.machine.Peer().SendRaw(t.Context(), ahp.AppendState(nil, ahp.NewState(dev, ahp.InputAwaits, time.Now()))))
	b.do("open", phone, nil)
	s.login(b)
	s.choose(b, "dev-server")
	b.wait(shownText + ".includes('use another one?')")
	want := "first\n" + long + "\n20%\nred true\n   uno\ntwo\nmain.c:3:5: error: no such type\nPort 3000 is taken, use another one?\n"
	if got := b.text(shownText); got != want {
		t.Errorf("the text is\n%q\nwant\n%q", got, want)
	}
	b.wait("document.querySelector('#brief').innerText.includes('no such type') && document.querySelector('#glance').textContent === 'awaiting input'")
	if got := b.text("[...document.querySelectorAll('#lines span span')].map(e => e.textContent + e.style.fontWeight + (e.style.color ? ' coloured' : '')).join()"); got != "red coloured,true700 coloured" {
		t.Errorf("what has colours is %q", got)
	}
	b.wait("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('#text')) && " + atEnd)
	b.shot("17-text-360")
	s.act(dev, print("y\r\nready\r\n"))
	b.wait(shownText + ".includes('use another one? y') && " + shownText + ".includes('ready')")

	b.do("click", args{"selector": "#tab-screen"}, nil)
	b.wait("document.querySelector('#screen').checkVisibility()")
	b.do("reload", nil, nil)
	b.wait("tetherPage.screen().includes('ready') && document.querySelector('#screen').checkVisibility()")
	b.do("click", args{"selector": "#back"}, nil)
	s.choose(b, "other")
	b.wait(shownText + ".includes('the other one') && document.querySelector('#text').checkVisibility()")
	b.do("click", args{"selector": "#back"}, nil)
	s.choose(b, "dev-server")
	b.wait("document.querySelector('#screen').checkVisibility()")
	b.do("key", args{"key": "t"}, nil)
	b.wait(shownText + ".includes('ready') && document.querySelector('#text').checkVisibility()")
	b.clean(s.server.URL)
}

// Where the terminal fits, the page shows the screen. The text follows the output unless
// it is scrolled up, keeps only so many lines of a flood, and can be searched and copied.
func TestPageTextFollowsAFlood(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	uri := s.lend(s.machine, "laptop", "build")
	flood := func(from, to int) {
		var text strings.Builder
		for n := from; n < to; n++ {
			fmt.Fprintf(&text, "\x1b[3%dmline %d\x1b[0m of many\r\n", n%8, n)
			if n%1000 == 999 || n == to-1 {
				s.act(uri, print(text.String()))
				text.Reset()
			}
		}
	}
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "build")
	b.wait("document.querySelector('#screen').checkVisibility()")
	b.do("key", args{"key": "t"}, nil)
	flood(0, 50)
	b.wait(shownText + ".endsWith('line 49 of many\\n') && " + atEnd)
	if got := b.text(shownText); !strings.HasPrefix(got, "line 0 of many\nline 1 of many\n") || strings.Count(got, "line 30 ") != 1 {
		t.Errorf("the text begins %.200q", got)
	}
	b.do("key", args{"key": "Home"}, nil)
	b.wait("!document.querySelector('#follow').hidden")
	flood(50, 60)
	b.wait(shownText + ".includes('line 59 ') && document.querySelector('#text').scrollTop === 0")
	b.do("click", args{"selector": "#follow"}, nil)
	b.wait(atEnd + " && document.querySelector('#follow').hidden")
	flood(60, 30_000)
	b.wait(shownText + ".endsWith('line 29999 of many\\n') && " + atEnd)
	b.wait("document.querySelectorAll('#lines > span').length === 1000 && document.querySelector('#lines > span').textContent === 'line 29000 of many\\n'")
	b.do("click", args{"selector": "#find"}, nil)
	b.do("type", args{"text": "line 2950"}, nil)
	b.wait("document.querySelector('#found').textContent === '10/10' && document.querySelector('mark.now').closest('#lines > span').textContent.includes('29509')")
	b.do("key", args{"key": "Shift+Enter"}, nil)
	b.wait("document.querySelector('#found').textContent === '9/10' && document.querySelector('mark.now').checkVisibility()")
	b.do("key", args{"key": "Escape"}, nil)
	b.do("key", args{"key": "y"}, nil)
	b.wait("navigator.clipboard.readText().then(s => s.startsWith('line 29000 of many\\n') && s.endsWith('line 29999 of many\\n'))")
	s.act(uri, print("\x1b[?1049h\x1b[2J\x1b[3;5Hfull screen"))
	b.wait(shownText + ".trim() === 'full screen'")
	s.act(uri, print("\x1b[?1049l"))
	b.wait(shownText + ".includes('line 29999 ')")
	s.act(uri, ahp.TerminalCleared{}, print("anew"))
	b.wait(shownText + " === 'anew\\n'")
	b.clean(s.server.URL)
}
