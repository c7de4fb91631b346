package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

func TestPageShowsTerminals(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	dev, shell := s.lend(s.machine, "laptop", "dev-server"), s.lend(s.machine, "laptop", "shell")
	desktop := s.join("desktop")
	s.lend(desktop, "desktop", "build")
	two := int64(2)
	s.act(s.lend(s.machine, "laptop", "tests"), print("2 failing\r\n"), ahp.TerminalExited{ExitCode: &two})
	must.Do(t, s.machine.Peer().Call(t.Context(), ahp.MethodLentPorts, ahp.LentPortsParams{Channel: dev, Ports: []ahp.LentPort{{Port: 3000}, {Port: 8080, Write: true}}}, nil))
	s.act(dev, print("\x1b[32mready\x1b[0m at http://localhost:3000/\r\n"))
	s.act(shell, ahp.TerminalCommandDetectionAvailable{}, ahp.TerminalCwdChanged{Cwd: "file:///home/me/shop/api"}, print("$ make test\r\n"))
	s.act(shell, command("1", "make test", "\x1b[31mFAIL\x1b[0m cart_test.go:17\r\nok  others\r\n", 1, 1500)...)
	s.act(shell, command("2", "git status", "nothing to commit\r\n", 0, 12)...)
	s.act(shell, ahp.TerminalCommandExecuted{CommandID: "3", CommandLine: "npm run watch", Timestamp: 1_760_000_000_000, Meta: &ahp.CommandMeta{Unverified: true}}, print("watching\r\n"))
	b.do("open", nil, nil)
	s.login(b)
	b.wait("document.querySelectorAll('nav a').length === 4")
	list := b.text("document.querySelector('nav').innerText")
	for _, want := range []string{"laptop", "desktop", "exited 2", "$ npm run watch", "/home/me/shop/api", "http://localhost:3000"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no %q:\n%s", want, list)
		}
	}
	b.shot("1-list")
	s.choose(b, "dev-server")
	b.wait("tetherPage.screen().includes('ready at http://localhost:3000/')")
	s.act(dev, print("GET /cart 200\r\n"))
	b.wait("tetherPage.screen().includes('GET /cart 200')")
	b.wait("document.querySelector('#facts').innerText.includes('1 watching')")
	facts := b.text("document.querySelector('#machine').innerText + document.querySelector('#state').innerText + document.querySelector('#facts').innerText")
	for _, want := range []string{"laptop", "running", "/home/me/shop", "held by laptop", "80×24", "http://localhost:3000", "open port 3000 for all who see this terminal, fetched 0×", "open port 8080 for all who see this terminal, for writing too, fetched 0×"} {
		if !strings.Contains(facts, want) {
			t.Errorf("what is said of the terminal has no %q: %s", want, facts)
		}
	}
	b.shot("2-screen")
	desktop.Close()
	b.wait("document.querySelector('nav').innerText.includes('machine offline')")
	s.choose(b, "shell")
	b.do("key", args{"key": "c"}, nil)
	b.wait("document.querySelectorAll('.block').length === 3")
	blocks := b.text("[...document.querySelectorAll('.block')].map(e => e.dataset.state + ' ' + e.open + ' ' + e.querySelector('summary').innerText).join('\\n')")
	for _, want := range []string{"bad false make test", "✗ 1", "1.5 s", "good false git status", "✓ 0", "12 ms", "running true npm run watch"} {
		if !strings.Contains(blocks, want) {
			t.Errorf("the commands have no %q:\n%s", want, blocks)
		}
	}
	if _, last, _ := strings.Cut(blocks, "npm run watch"); !strings.Contains(last, "○ unverified") || strings.Count(blocks, "○") != 1 {
		t.Errorf("that command alone is not verified:\n%s", blocks)
	}
	b.do("eval", args{"js": "document.querySelector('.block summary').click()"}, nil)
	b.wait("document.querySelector('.block[open] pre').innerText.includes('FAIL cart_test.go:17')")
	zero, ms := int64(0), 61000.0
	s.act(shell, print("done\r\n"), ahp.TerminalCommandFinished{CommandID: "3", ExitCode: &zero, DurationMs: &ms})
	b.wait("document.querySelectorAll('.block')[2].innerText.includes('1 min 1 s')")
	b.shot("3-commands")
	b.do("eval", args{"js": "document.querySelector('.block summary').click()"}, nil)
	b.wait("!document.querySelector('.block').open")
	b.do("click", args{"selector": "#find"}, nil)
	b.do("type", args{"text": "nothing to"}, nil)
	b.wait("[...document.querySelectorAll('.block')].filter(e => !e.hidden).length === 1 && document.querySelector('#found').textContent === '1'")
	b.clean(s.server.URL)
}

// The page shows text that a program has drawn long ago, although the host has not kept
// that output and the size may have changed since.
func TestPageShowsTheScreenOfALateJoiner(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{Scrollback: 64 << 10})
	uri := s.lendMonitor()
	for i := 0; i < 80_000; {
		var text strings.Builder
		for ; i < 80_000 && text.Len() < 32<<10; i++ {
			fmt.Fprintf(&text, "\x1b[4;1H\x1b[Kcounter %d", i)
		}
		s.act(uri, print(text.String()))
		if i > 79_000 && i < 80_000 {
			s.act(uri, ahp.TerminalResized{Cols: 100, Rows: 30})
		}
	}
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "monitor")
	s.showsMonitor(b, "counter 79999")
}

// A page that was busy while a program printed more than the host's log holds shows the
// same screen as a page that was not.
func TestPageThatFellBehindShowsTheScreen(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{Scrollback: 64 << 10, LogBytes: 64 << 10})
	uri := s.lendMonitor()
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "monitor")
	b.wait("tetherPage.screen().includes('THE HEADER')")
	// A slow machine needs more than six seconds for the output below, and the page hides
	// the notice then.
	_ = b.text("window.notices = []; new MutationObserver(() => window.notices.push(document.querySelector('#notice').textContent))" +
		".observe(document.querySelector('#notice'), {childList: true}) + ''")
	_ = b.text("setTimeout(() => { const end = Date.now() + 3000; while (Date.now() < end); }) + ''")
	padding := strings.Repeat("\x1b[5;1H\x1b[K"+strings.Repeat("x", 70), 800)
	for i := range 600 { // more than sockets hold
		s.act(uri, print(fmt.Sprintf("%s\x1b[4;1H\x1b[Kcounter %d", padding, i)))
	}
	b.wait("window.notices.some(text => text.includes('This page fell behind'))")
	s.showsMonitor(b, "counter 599")
}

// lendMonitor lends a terminal whose program has drawn a header that it never draws
// again, and returns its URI.
func (s *site) lendMonitor() (uri string) {
	uri = s.lend(s.machine, "laptop", "monitor")
	s.act(uri, print("\x1b[?1049h\x1b[2J\x1b[HTHE HEADER\x1b[3;1H"))
	return uri
}

// showsMonitor waits until a page shows the header and only the newest counter.
func (s *site) showsMonitor(b *browser, newest string) {
	b.wait("tetherPage.screen().includes('THE HEADER') && tetherPage.screen().includes('" + newest + "') && tetherPage.waiting() === 0")
	if text := b.text("tetherPage.screen()"); strings.Count(text, "counter") != 1 {
		s.t.Errorf("the page shows\n%s", text)
	}
	b.clean(s.server.URL)
}

// The problems tab lists the problems in the output, adds new ones while it is shown, and
// says how much output was gone before anybody looked.
func TestPageShowsProblems(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{Scrollback: 64 << 10})
	quiet, build := s.lend(s.machine, "laptop", "quiet"), s.lend(s.machine, "laptop", "build")
	s.act(quiet, print("all is well\r\n"))
	for range 4 {
		s.act(build, print(strings.Repeat("compiling\r\n", 3000)))
	}
	s.act(build, print("main.c:3:5: error: no such type '<img src=x onerror=window.pwned=1>'\r\n"))
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "build")
	b.wait("tetherPage.screen().includes('no such type')")
	b.do("key", args{"key": "p"}, nil)
	rows := "[...document.querySelectorAll('.problem')].filter(e => !e.hidden).map(e => e.dataset.severity + '|' + e.innerText).join('\\n')"
	b.wait("document.querySelectorAll('.problem').length === 1")
	if got := b.text(rows); got != "error|error /home/me/shop/main.c:3:5 no such type '<img src=x onerror=window.pwned=1>' gcc" {
		t.Errorf("the problem is shown as %q", got)
	}
	if notes := b.text("document.querySelector('#problems').innerText"); !strings.Contains(notes, "1 error, 0 warnings") || !strings.Contains(notes, "kB of output were gone before") {
		t.Errorf("beside the problem it says %q", notes)
	}
	s.act(build, print("util.c:7:1: warning: unused variable [-Wunused]\r\n"))
	b.wait("document.querySelectorAll('.problem').length === 2 && document.querySelector('#problem-count').textContent === '2'")
	b.shot("15-problems")
	b.do("click", args{"selector": "#find"}, nil)
	b.do("type", args{"text": "unused"}, nil)
	b.wait("document.querySelector('#found').textContent === '1'")
	if got := b.text(rows); !strings.HasPrefix(got, "warning|warning /home/me/shop/util.c:7:1 unused variable") || strings.Contains(got, "\n") {
		t.Errorf("found is %q", got)
	}
	b.do("key", args{"key": "Escape"}, nil)
	b.do("key", args{"key": "y"}, nil)
	b.wait("navigator.clipboard.readText().then(s => s.startsWith('error /home/me/shop/main.c:3:5 no such type') && s.includes('util.c:7:1'))")
	s.choose(b, "quiet")
	b.wait("document.querySelector('#problems').innerText === 'No problems found.' && document.querySelector('#problem-count').textContent === ''")
	if got := b.text("String(window.pwned)"); got != "undefined" {
		t.Errorf("output ran in the page: %s", got)
	}
	b.clean(s.server.URL)
}

func TestPageFindsCopiesAndDownloads(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	uri := s.lend(s.machine, "laptop", "dev-server")
	for i := range 60 {
		s.act(uri, print(fmt.Sprintf("line %02d of the log\r\n", i)))
	}
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "dev-server")
	b.wait("tetherPage.screen().includes('line 59')")
	b.do("key", args{"key": "/"}, nil)
	b.do("type", args{"text": "of the log"}, nil)
	b.wait("/\\/60$/.test(document.querySelector('#found').textContent)")
	b.shot("4-find")
	b.do("key", args{"key": "Escape"}, nil)
	b.do("key", args{"key": "Home"}, nil)
	b.wait("!document.querySelector('#follow').hidden")
	b.do("click", args{"selector": "#follow"}, nil)
	b.wait("document.querySelector('#follow').hidden")
	b.do("click", args{"selector": "#copy"}, nil)
	b.wait("document.querySelector('#notice').textContent.startsWith('Copied')")
	copied := b.text("navigator.clipboard.readText()")
	if !strings.Contains(copied, "line 00 of the log\n") || !strings.Contains(copied, "line 59 of the log") {
		t.Errorf("copied %q", copied)
	}
	got := b.text("fetch(document.querySelector('#download').href).then(async r => r.headers.get('Content-Disposition') + r.headers.get('Content-Type') + await r.text())")
	if !strings.HasPrefix(got, "attachment;") || !strings.Contains(got, "text/plain; charset=utf-8") || !strings.Contains(got, "line 00 of the log\n") {
		t.Errorf("downloaded %.300q", got)
	}
	b.clean(s.server.URL)
}

// The page keeps the newest part of a command's output, so that a search is quick enough
// for each key typed.
func TestPageBoundsCommands(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	shell := s.lend(s.machine, "laptop", "shell")
	s.act(shell, ahp.TerminalCommandDetectionAvailable{})
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "shell")
	b.do("key", args{"key": "c"}, nil)
	const many = 24
	for n := range many {
		id, zero := fmt.Sprint(n), int64(0)
		s.act(shell, ahp.TerminalCommandExecuted{CommandID: id, CommandLine: "make " + id, Timestamp: 1})
		for range 4 {
			s.act(shell, print(strings.Repeat("all work and no play\r\n", 2500)))
		}
		s.act(shell, print(fmt.Sprintf("needle-%d\r\n", n)), ahp.TerminalCommandFinished{CommandID: id, ExitCode: &zero})
		b.wait(fmt.Sprintf("tetherPage.waiting() === 0 && document.querySelectorAll('.block').length === %d", n+1))
	}
	b.do("eval", args{"js": "document.querySelector('.block').open = true"}, nil)
	b.wait("document.querySelector('.block pre').innerText.includes('not kept here any more')")
	b.do("click", args{"selector": "#find"}, nil)
	for text, found := range map[string]string{"needle-": "1", fmt.Sprint("needle-", many-1): "1", "needle-0": "none"} {
		b.do("eval", args{"js": fmt.Sprintf("document.querySelector('#find').value = %q, document.querySelector('#find').dispatchEvent(new Event('input'))", text)}, nil)
		if text == "needle-" {
			b.wait("Number(document.querySelector('#found').textContent) > 10")
			continue
		}
		b.wait(fmt.Sprintf("document.querySelector('#found').textContent === %q", found))
	}
	b.clean(s.server.URL)
}

// A lost connection is shown, and output printed meanwhile appears afterwards, once.
func TestPageReconnects(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{LogBytes: 64 << 10})
	uri := s.lend(s.machine, "laptop", "dev-server")
	s.act(uri, print("before\r\n"))
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "dev-server")
	b.wait("tetherPage.screen().includes('before')")
	cut := func(text string, times int) {
		t.Helper()
		s.conns.cut()
		b.wait("document.querySelector('#link').textContent.startsWith('reconnecting') && document.querySelector('#notice').textContent.includes('may be old')")
		b.shot("5-lost")
		for range times {
			s.act(uri, print(text))
		}
		s.conns.may()
		b.wait("document.querySelector('#link').dataset.state === 'up'")
	}
	cut("meanwhile\r\n", 1)
	b.wait("tetherPage.screen().includes('meanwhile')")
	if text := b.text("tetherPage.screen()"); strings.Count(text, "before") != 1 || strings.Count(text, "meanwhile") != 1 {
		t.Errorf("after the connection was lost, the screen has %q", text)
	}
	cut(strings.Repeat("much more than is kept for who comes back\r\n", 100)+"the end\r\n", 40)
	b.wait("tetherPage.screen().includes('the end')")
	b.wait("document.querySelector('#notice').textContent.includes('newest state')")
	b.shot("5-resynchronised")
	b.clean(s.server.URL)
}

// Whatever a program prints or a machine says, the page only shows it.
func TestPageShowsHostileOutput(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	evil := `<img src=x onerror="window.pwned=1"><script>window.pwned=2</script>`
	uri := s.lendAs(s.machine, "laptop", "evil", evil)
	s.act(uri, ahp.TerminalCommandDetectionAvailable{}, ahp.TerminalTitleChanged{Title: evil + "\u202e\u2066txt.exe"}, ahp.TerminalCwdChanged{Cwd: "file:///" + evil})
	s.act(uri, ahp.TerminalCommandExecuted{CommandID: evil, CommandLine: evil + "\u202egnp.sh\x1b[2J\U000e0041", Timestamp: 1})
	s.act(uri, print(evil+"\r\n\x1b]0;"+evil+"\a\x1b]52;c;cHduZWQ=\a\x1b[c\x1b[>c\x1b[6n\x1b]11;?\a\x1bP$qm\x1b\\\x1b[21t\x1b]1337;File=inline=1:AAAA\a\x05"+
		"\x1b]8;;javascript:window.pwned=3\x1b\\click me\x1b]8;;\x1b\\ \x1b]8;;https://example.com/\u202egpj\x1b\\or me\x1b]8;;\x1b\\\r\nuser\u202enimda\u2069 ends here\r\n"))
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, evil)
	b.wait("tetherPage.screen().includes('ends here')")
	screen := b.text("tetherPage.screen()")
	if strings.ContainsAny(screen, "\u202e\u2069") || !strings.Contains(screen, "user\ufffdnimda\ufffd") || !strings.Contains(screen, "<script>") {
		t.Errorf("the screen has %q", screen)
	}
	for _, link := range []struct{ text, js string }{
		{"click me", "!document.querySelector('#ask').open && document.querySelector('#ask').returnValue === ''"},
		{"or me", "document.querySelector('#ask').open && document.querySelector('#where').textContent.startsWith('https://example.com/')"},
	} {
		click := func() {
			b.do("eval", args{"js": `(async text => {
			const rows = tetherPage.screen().split("\n"), row = rows.findIndex(s => s.includes(text)), at = rows[row].indexOf(text);
			const screen = document.querySelector('.xterm-screen').getBoundingClientRect();
			const x = screen.left + (at + 2) * screen.width / 80, y = screen.top + (row + .5) * screen.height / 24, on = document.elementFromPoint(x, y);
			for (const type of ["mousemove", "mousemove", "mousedown", "mouseup", "click"]) {
				on.dispatchEvent(new MouseEvent(type, {bubbles: true, clientX: x, clientY: y, view: window}));
				await new Promise(r => setTimeout(r, 100));
			}
		})(` + fmt.Sprintf("%q", link.text) + `)`}, nil)
		}
		testkit.Eventually(t, testkit.Patience, link.js, func() (is bool) { // the click may come before the screen has noticed the mouse
			click()
			b.do("eval", args{"js": link.js}, &is)
			return is
		})
	}
	b.shot("6-link")
	b.do("eval", args{"js": "document.querySelector('#ask').close()"}, nil)
	b.do("key", args{"key": "c"}, nil)
	b.wait("document.querySelector('.block')?.innerText.includes('ends here')")
	b.shot("7-hostile")
	if line := b.text("document.querySelector('.block summary code').textContent"); line != evil+"gnp.sh[2J" {
		t.Errorf("the command line is shown as %q", line)
	}
	if clipboard := b.text("navigator.clipboard.readText()"); strings.Contains(clipboard, "pwned") {
		t.Errorf("output has written to the clipboard: %q", clipboard)
	}
	if got := b.text("String(window.pwned) + document.querySelectorAll('main img, nav img, main script, nav script').length"); got != "undefined0" {
		t.Errorf("output ran in the page: %s", got)
	}
	b.clean(s.server.URL)
}

// A flood leaves the page usable, and it ends at the end.
func TestPageInAFlood(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	uri, quiet := s.lend(s.machine, "laptop", "flood"), s.lend(s.machine, "laptop", "quiet")
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "flood")
	b.do("eval", args{"js": `(() => {
		window.gap = 0;
		let last = performance.now();
		setInterval(() => { const now = performance.now(); window.gap = Math.max(window.gap, now - last); last = now; }, 20);
	})()`}, nil)
	const line = "\x1b[3%dm%08d\x1b[0m the quick brown fox jumps over the lazy dog and goes on\r\n"
	var chunk strings.Builder
	for i := 0; chunk.Len() < 60<<10; i++ {
		fmt.Fprintf(&chunk, line, i%8, i)
	}
	const flood, uses = 100 << 20, 10 // bytes, and number of uses of the page meanwhile; the flood continues until both are reached
	done := make(chan error, 1)
	var used atomic.Int32
	go func() {
		for sent := 0; sent < flood || used.Load() < uses; sent += chunk.Len() {
			if _, err := s.machine.Dispatch(t.Context(), uri, print(chunk.String())); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for used.Load() < uses {
		name := []string{"quiet", "flood"}[used.Load()%2]
		b.do("click", args{"selector": "#filter"}, nil)
		b.do("key", args{"key": "Control+a"}, nil)
		b.do("type", args{"text": name}, nil)
		b.wait(fmt.Sprintf("[...document.querySelectorAll('nav a:not([hidden]) .name')].map(e => e.textContent).join() === %q", name))
		used.Add(1)
	}
	b.shot("8-flood")
	must.Do(t, <-done)
	s.act(uri, print("\r\nTHE END\r\n"))
	s.act(quiet, print("x"))
	b.wait("tetherPage.screen().includes('THE END') && tetherPage.waiting() === 0")
	var gap, heap float64
	b.do("eval", args{"js": "window.gap"}, &gap)
	b.do("eval", args{"js": "performance.memory?.usedJSHeapSize ?? 0"}, &heap)
	t.Logf("longest pause of the page %.0f ms, %.0f MB of scripts' memory", gap, heap/1e6)
	if gap > 60_000 || heap > 400e6 { // an idle machine takes half a second; a busy one also pauses the page
		t.Errorf("the page paused for %.0f ms and takes %.0f MB", gap, heap/1e6)
	}
	b.clean(s.server.URL)
}

func TestPageByKeyboardDarkAndNarrow(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	for _, name := range []string{"dev-server", "shell", "tests"} {
		s.act(s.lendLater(s.machine, "laptop", name), print("\x1b[1;34mthis is "+name+"\x1b[0m\r\n\x1b[33mwarning\x1b[0m: "+strings.Repeat("wide ", 12)+"\r\n"))
	}
	b.do("open", args{"dark": true}, nil)
	s.login(b)
	b.wait("document.querySelectorAll('nav a').length === 3")
	for _, key := range []string{"ArrowDown", "ArrowDown", "Enter"} {
		b.do("key", args{"key": key}, nil)
	}
	b.wait("tetherPage.screen().includes('this is shell')")
	if got := b.text("document.documentElement.dataset.theme + getComputedStyle(document.body).backgroundColor"); got != "darkrgb(18, 21, 26)" {
		t.Errorf("in the dark it is %s", got)
	}
	b.do("key", args{"key": "?"}, nil)
	b.wait("document.querySelector('#help').open")
	b.shot("9-dark-keys")
	b.do("key", args{"key": "Escape"}, nil)
	b.do("key", args{"key": "Escape"}, nil)
	b.wait("document.querySelector('#view').hidden")
	for _, want := range []string{"lightrgb(246, 247, 249)", "darkrgb(18, 21, 26)"} { // whatever the system's setting is, and after a reload
		b.do("click", args{"selector": "#theme"}, nil)
		b.do("reload", nil, nil)
		b.wait("document.querySelector('#link')?.dataset.state === 'up'")
		if got := b.text("document.documentElement.dataset.theme + getComputedStyle(document.body).backgroundColor"); got != want {
			t.Errorf("after the theme was changed it is %s, want %s", got, want)
		}
	}
	b.do("open", args{"width": 390, "height": 780}, nil)
	s.login(b)
	b.wait("document.querySelectorAll('nav a').length === 3")
	b.shot("10-narrow-list")
	s.choose(b, "dev-server")
	b.wait("tetherPage.screen().includes('this is dev-server')")
	b.wait("getComputedStyle(document.querySelector('aside')).display === 'none' && document.documentElement.scrollWidth <= 390")
	b.shot("11-narrow-terminal")
	b.do("click", args{"selector": "#back"}, nil)
	b.wait("getComputedStyle(document.querySelector('aside')).display !== 'none'")
	b.do("goto", args{"url": s.server.URL + "/plain"}, nil)
	b.shot("12-plain")
	b.clean(s.server.URL)
}

// Every key in the help has its effect, and text typed at a terminal is not sent.
func TestPageKeys(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	s.lendLater(s.machine, "laptop", "dev-server")
	shell := s.lend(s.machine, "laptop", "shell")
	s.act(shell, ahp.TerminalCommandDetectionAvailable{})
	for n := range 3 {
		s.act(shell, command(fmt.Sprint(n), fmt.Sprint("make part", n), strings.Repeat(fmt.Sprintf("made part%d\r\n", n), 30), 0, 10)...)
	}
	b.do("open", nil, nil)
	s.login(b)
	b.wait("document.querySelectorAll('nav a').length === 2")
	press := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			b.do("key", args{"key": key}, nil)
		}
	}
	focused := func(name string) {
		t.Helper()
		b.wait(fmt.Sprintf("document.activeElement.querySelector('.name')?.textContent === %q", name))
	}
	press("f")
	b.do("type", args{"text": "dev"}, nil)
	b.wait("document.querySelectorAll('nav a:not([hidden])').length === 1")
	press("Escape")
	b.wait("document.querySelectorAll('nav a:not([hidden])').length === 2 && document.querySelector('#filter').value === ''")
	press("ArrowDown")
	focused("shell")
	press("j")
	focused("dev-server")
	press("k")
	focused("shell")
	press("Enter")
	b.wait("tetherPage.screen().includes('made part2')")

	b.do("click", args{"selector": "#term"}, nil)
	before := b.text("tetherPage.screen()")
	b.do("type", args{"text": "zx;rm -r w\n"}, nil) // none of these letters is a key of the page
	press("Control+c", "Control+d", "Enter")
	if after := b.text("tetherPage.screen()"); after != before {
		t.Errorf("after typing, the screen has %q", after)
	}

	press("s", "Home")
	b.wait("!document.querySelector('#follow').hidden")
	press("End")
	b.wait("document.querySelector('#follow').hidden")
	press("PageUp")
	b.wait("!document.querySelector('#follow').hidden")
	press("PageDown")
	b.wait("document.querySelector('#follow').hidden")

	press("/")
	b.do("type", args{"text": "made part1"}, nil)
	b.wait("/\\/30$/.test(document.querySelector('#found').textContent)")
	at := b.text("document.querySelector('#found').textContent")
	press("Enter")
	b.wait(fmt.Sprintf("document.querySelector('#found').textContent !== %q", at))
	press("Shift+Enter")
	b.wait(fmt.Sprintf("document.querySelector('#found').textContent === %q", at))
	press("Escape")

	press("c", "o")
	b.wait("document.querySelectorAll('.block:not([open])').length === 3")
	press("o")
	b.wait("document.querySelectorAll('.block[open]').length === 3")
	b.do("click", args{"selector": ".block .bar button"}, nil)
	b.wait("document.querySelector('#notice').textContent.startsWith('Copied')")
	if copied := b.text("navigator.clipboard.readText()"); !strings.HasPrefix(copied, "made part0\n") || strings.Contains(copied, "part1") {
		t.Errorf("of one command was copied %q", copied)
	}
	press("s", "y")
	b.wait("navigator.clipboard.readText().then(s => s.includes('made part2'))")
	press("?")
	b.wait("document.querySelector('#help').open")
	press("Escape", "Escape")
	b.wait("document.querySelector('#view').hidden")
	b.clean(s.server.URL)
}

func TestPageWithoutScripts(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	s.act(s.lendAs(s.machine, "laptop", "dev", "<b>dev</b>"), print("\x1b[32mready\x1b[0m\r\n"))
	b.do("open", args{"script": false}, nil)
	link := s.host.Page().Launch(rights.Principal{Role: rights.RoleObserver})
	b.do("goto", args{"url": s.server.URL + link}, nil)
	b.do("click", args{"selector": "#code"}, nil)
	b.do("type", args{"text": strings.TrimPrefix(link, "/launch#")}, nil)
	b.do("key", args{"key": "Enter"}, nil)
	b.wait("location.pathname === '/'")
	b.do("goto", args{"url": s.server.URL + "/plain"}, nil)
	if text := b.text("document.body.innerText"); !strings.Contains(text, "laptop\n") || !strings.Contains(text, "<b>dev</b> running") {
		t.Errorf("the plain page says %q", text)
	}
	b.do("click", args{"selector": "li a"}, nil)
	if text := b.text("document.body.innerText"); strings.TrimSpace(text) != "ready" {
		t.Errorf("the terminal's text is %q", text)
	}
	b.clean(s.server.URL)
}

// A link works once; the cookie it gives is out of reach for scripts and other sites.
func TestLaunchLinkInABrowser(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	b.do("open", nil, nil)
	var status int
	b.do("goto", args{"url": s.server.URL}, &status)
	if status != http.StatusOK || !strings.Contains(b.text("document.body.innerText"), "tether-host link") {
		t.Errorf("without a link: %d", status)
	}
	b.shot("13-login")
	link := s.host.Page().Launch(rights.Principal{Name: "ann", Role: rights.RoleObserver})
	s.follow(b, link)
	b.wait("document.querySelector('#link')?.dataset.state === 'up'")
	var cookies []struct {
		Name, SameSite string
		HTTPOnly       bool `json:"httpOnly"`
	}
	b.do("cookies", nil, &cookies)
	if len(cookies) != 1 || !cookies[0].HTTPOnly || cookies[0].SameSite != "Strict" {
		t.Errorf("cookies %+v", cookies)
	}
	b.do("open", nil, nil) // another browser
	s.follow(b, link)
	b.wait("document.querySelector('.wrong')?.textContent.includes('already used')")
	b.wait("document.activeElement.id === 'token'")
	b.do("type", args{"text": "wrong"}, nil)
	b.do("key", args{"key": "Enter"}, nil)
	b.wait("document.querySelector('.wrong')?.textContent.includes('token is wrong')")
	b.do("click", args{"selector": "input"}, nil)
	b.do("type", args{"text": token}, nil)
	b.do("key", args{"key": "Enter"}, nil)
	b.wait("document.querySelector('#link')?.dataset.state === 'up'")
	b.do("click", args{"selector": "footer form button"}, nil)
	b.wait("document.body.innerText.includes('tether-host link')")
	testkit.Eventually(t, testkit.Patience, "nobody is logged in", func() bool {
		r := must.Get(http.Get(s.server.URL + "/events"))(t)
		r.Body.Close()
		return r.StatusCode == http.StatusUnauthorized
	})
}

// A list of thousands of rows is usable, and a change of one terminal draws one row only.
func TestPageWithThousandsOfTerminals(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{MaxTerminals: 6000})
	const many = 5000
	uris := make([]string, many)
	for n := range uris {
		uris[n] = s.lend(s.machine, "laptop", fmt.Sprintf("server-%04d", n))
	}
	b.do("open", nil, nil)
	s.login(b)
	b.wait(fmt.Sprintf("document.querySelectorAll('#list a').length === %d", many))
	b.do("eval", args{"js": `(() => {
		window.drawn = 0;
		new MutationObserver(all => { window.drawn += new Set(all.map(m => m.target.parentElement?.closest("a"))).size; })
			.observe(document.querySelector("#list"), {subtree: true, childList: true, characterData: true});
		window.gap = 0;
		let last = performance.now();
		setInterval(() => { const now = performance.now(); window.gap = Math.max(window.gap, now - last); last = now; }, 5);
	})()`}, nil)
	s.act(uris[17], ahp.TerminalTitleChanged{Title: "something new"})
	b.wait("document.querySelector('#list').textContent.includes('something new')")
	var drawn, gap float64
	b.do("eval", args{"js": "window.drawn"}, &drawn)
	b.do("eval", args{"js": "window.gap"}, &gap)
	t.Logf("%d terminals: a new title drew %.0f rows; the longest pause of the page was %.0f ms", many, drawn, gap)
	if drawn < 1 || drawn > 10 {
		t.Errorf("a new title drew %.0f rows", drawn)
	}
	b.do("click", args{"selector": "#filter"}, nil)
	b.do("type", args{"text": "server-0042"}, nil)
	b.wait("document.querySelectorAll('nav a:not([hidden])').length === 1")
	must.Do(t, s.machine.DisposeTerminal(t.Context(), uris[42]))
	b.wait("document.querySelector('#list').textContent.includes('No terminal matches.')")
	b.clean(s.server.URL)
}
