package host_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

// All terminals together keep no more than the bound, whatever the bound of each. The
// largest give way, and readers are told.
func TestMemoryOfAllTerminals(t *testing.T) {
	const most = 1 << 20
	h := testHost(t, host.Options{MaxMemory: most, Scrollback: 1 << 20, LogBytes: 512 << 10})
	quiet := host.NewFeed(h, "ahp-terminal:/quiet")
	quiet.Text("what was printed first\r\n")
	var feeds []*host.Feed
	for i := range 20 {
		feeds = append(feeds, host.NewFeed(h, fmt.Sprint("ahp-terminal:/", i)))
	}
	line := strings.Repeat("x", 100) + "\r\n"
	for range testkit.Load(2000, 700) {
		for i, f := range feeds {
			f.Text(line)
			if i%5 == 0 {
				f.Text(strings.Repeat(line, 30))
			}
		}
		if counted, real, _ := h.Memory(); counted != real || real > most+64<<10 {
			t.Fatalf("it counts %d bytes, and there are %d; at most %d should be", counted, real, most)
		}
	}
	if got := quiet.Recorded(); got != "what was printed first\r\n" {
		t.Errorf("the quiet one has %q", got)
	}
	for i, f := range feeds {
		if got := f.Recorded(); len(got) < 4<<10 || !strings.HasSuffix(got, line) {
			t.Errorf("terminal %d has %d bytes of text", i, len(got))
		}
	}
	for _, f := range append(feeds, quiet) {
		f.Remove()
	}
	if counted, real, _ := h.Memory(); counted != 0 || real != 0 {
		t.Errorf("without terminals it counts %d bytes of %d", counted, real)
	}
}

// One long envelope each is not more than may be kept either. The program in a terminal
// stays known.
func TestMemoryOfLongEnvelopes(t *testing.T) {
	const most = 2 << 20
	h := testHost(t, host.Options{MaxMemory: most})
	var feeds []*host.Feed
	for i := range 100 {
		f := host.NewFeed(h, fmt.Sprint("ahp-terminal:/", i))
		f.Act(ahp.TerminalCommandExecuted{CommandID: "1", CommandLine: "make"})
		f.Text(strings.Repeat("x", 100<<10))
		feeds = append(feeds, f)
	}
	if counted, _, least := h.Memory(); counted > most || least < 4<<10 {
		t.Errorf("it counts %d bytes, at most %d should be; one terminal has %d", counted, most, least)
	}
	for i, f := range feeds {
		if got := f.Running(); got != "make" {
			t.Fatalf("terminal %d runs %q", i, got)
		}
	}
}

// A terminal that gives way releases memory, not only counted bytes: that of long, partly
// kept envelopes, and the room of many small ones.
func TestMemoryIsGivenBack(t *testing.T) {
	h := testHost(t, host.Options{MaxMemory: 8 << 20})
	small := host.NewFeed(h, "ahp-terminal:/small")
	for range 4096 {
		small.Text("x")
	}
	long := strings.Repeat("x", 32<<10)
	var envelopes []weak.Pointer[byte]
	for i := range 50 {
		f := host.NewFeed(h, fmt.Sprint("ahp-terminal:/", i))
		f.Text(long)
		envelopes = append(envelopes, f.Newest())
	}
	for i := range 500 { // too many
		host.NewFeed(h, fmt.Sprint("ahp-terminal:/more/", i)).Text(long)
	}
	runtime.GC()
	for i, e := range envelopes {
		if e.Value() != nil {
			t.Fatalf("all of envelope %d is still there, for a part of its text", i)
		}
	}
	runtime.KeepAlive(h)
}

// The resynchronisation of a subscriber that fell behind is prepared for one of its
// terminals at a time: it may have a thousand.
func TestOneResynchronisationAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{LogBytes: 8 << 10, StallTime: time.Hour})
		owner := connect(t, h, "laptop", viewOptions{})
		const many = 40
		var uris []string
		for i := range many {
			uris = append(uris, fmt.Sprint("ahp-terminal:/", i))
			owner.create(uris[i])
		}
		v, g := slowViewer(t, h, "slow", uris...)
		for i := range 40 {
			for _, uri := range uris {
				owner.output(uri, strings.Repeat(fmt.Sprintf("line %d\r\n", i), 100), -1)
			}
		}
		owner.ping()
		worst := 0
		for range 20 {
			g.allow(5)
			synctest.Wait()
			if bytes, n := h.Prepared(); n > 1 {
				t.Fatalf("%d bytes are prepared for %d subscriptions", bytes, n)
			} else {
				worst = max(worst, n)
			}
		}
		if worst == 0 {
			t.Error("nobody fell behind")
		}
		g.openUp()
		for _, uri := range uris {
			v.awaitText(uri, "line 39\r\n")
		}
	})
}

// A machine that runs commands with long names and no output does not make the host keep
// them all.
func TestMarksOfLongLinesAreBounded(t *testing.T) {
	h := testHost(t, host.Options{Scrollback: 64 << 10})
	f := host.NewFeed(h, "ahp-terminal:/a")
	line := strings.Repeat("x", ahp.MaxCommandLine)
	for i := range 500 {
		f.Act(ahp.TerminalCommandExecuted{CommandID: fmt.Sprint(i), CommandLine: line[i:]})
		f.Act(ahp.TerminalCommandFinished{CommandID: fmt.Sprint(i)})
	}
	if n := f.Lines(); n > 1<<20 || n == 0 {
		t.Errorf("%d bytes of command lines are kept", n)
	}
}

// A browser can only watch, with any login, and makes no links by which it would stay for
// ever.
func TestACookieOnlyWatches(t *testing.T) {
	h, url := serve(t, host.Options{Token: secret, Runner: &fakeRunner{procs: map[string]*fakeProcess{}}})
	cookie := launchedAs(t, h, url, rights.Principal{Role: rights.RoleAdmin})
	ch := must.Get(wsconn.Dial(t.Context(), url, wsconn.Options{HTTPHeader: http.Header{"Cookie": {cookie}}, ReadLimit: 1 << 20}))(t)
	v := newViewer(t, ch, "page")
	defer v.close()
	v.initialize(viewOptions{subs: []string{ahp.RootURI}})
	dial(t, url+"?tkn="+secret, "laptop", viewOptions{}).create(uri)
	v.await("it sees what there is", func() bool { return len(v.root.Terminals) == 1 })
	for what, err := range map[string]error{
		"a shell":  v.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: "ahp-terminal:/s", Claim: ahp.ClientClaim("page")}, nil),
		"lending":  v.call(ahp.MethodCreateTerminal, clientTerminal("ahp-terminal:/l", "page"), nil),
		"disposal": v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil),
	} {
		if code(err) != int64(ahp.CodePermissionDenied) {
			t.Errorf("%s with a browser's cookie: %v", what, err)
		}
	}
	if r, body := ask(t, url, visit{method: http.MethodPost, path: "/launch", cookie: cookie}); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a link with a browser's cookie: %d %s", r.StatusCode, body)
	}
}

// A page asks by HEAD whether it is still logged in; the answer ends.
func TestHeadOfTheListEnds(t *testing.T) {
	h, url := serve(t, host.Options{Token: secret})
	cookie := launchedAs(t, h, url, rights.Principal{})
	for range 3 { // on one connection
		if r, _ := ask(t, url, visit{method: http.MethodHead, path: "/events", cookie: cookie}); r.StatusCode != http.StatusOK {
			t.Fatalf("status %d", r.StatusCode)
		}
	}
	if r, _ := ask(t, url, visit{path: "/plain", cookie: cookie}); r.StatusCode != http.StatusOK {
		t.Errorf("then: %d", r.StatusCode)
	}
}

// Requests that are refused fill neither the log nor the record, and keep no connection.
func TestRefusalsFillNoLog(t *testing.T) {
	log := &testkit.Output{}
	logger := zerolog.New(log)
	var mu sync.Mutex
	records := 0
	h, url := serve(t, host.Options{Token: secret, Logger: &logger, Audit: func(rights.AuditEvent) {
		mu.Lock()
		defer mu.Unlock()
		records++
	}})
	beside := 0 // refused by a handler beside the host
	for range 100 {
		if h.Noted(&http.Request{RemoteAddr: "192.0.2.1:1"}) {
			beside++
		}
	}
	if beside < 5 || beside > 60 {
		t.Errorf("of 100 refusals beside the host %d are logged", beside)
	}
	began := time.Now()
	for i := range 100 {
		r, _ := ask(t, url, visit{path: []string{"/events", "/x", "/terminals/pty-a.txt", "/mcp"}[i%4], origin: []string{"", "http://evil.example"}[i/4%2]})
		if r.StatusCode < 400 || !r.Close {
			t.Fatalf("status %d, closed %v", r.StatusCode, r.Close)
		}
	}
	lines := strings.Count(log.String(), "\n")
	mu.Lock()
	defer mu.Unlock()
	if most := 60 + comeBack(began); lines < 5 || lines > most || records > most {
		t.Errorf("100 refusals are %d lines in the log and %d in the record", lines, records)
	}
}

// Who tries launch links is limited as who tries tokens is, and written down, but fills
// neither the log nor the record.
func TestGuessedLinks(t *testing.T) {
	log := &testkit.Output{}
	logger := zerolog.New(log)
	var mu sync.Mutex
	var records []rights.AuditEvent
	h, url := serve(t, host.Options{Token: secret, Logger: &logger, Audit: func(ev rights.AuditEvent) {
		mu.Lock()
		defer mu.Unlock()
		records = append(records, ev)
	}})
	count := map[int]int{}
	began := time.Now()
	for i := range 100 {
		r, _ := ask(t, url, pressing(url, fmt.Sprint("#guess-", i)))
		count[r.StatusCode]++
	}
	wrong, limited := count[http.StatusForbidden], count[http.StatusTooManyRequests]
	most := 50 + comeBack(began)
	if wrong < 10 || wrong > most || wrong+limited != 100 {
		t.Errorf("answers %v, want about 10 that were looked at", count)
	}
	if r, _ := ask(t, url, pressing(url, h.Page().Launch(rights.Principal{}))); r.StatusCode != http.StatusSeeOther {
		t.Errorf("a good link from there: %d", r.StatusCode)
	}
	mu.Lock()
	defer mu.Unlock()
	lines := strings.Count(log.String(), "\n")
	if most += 10; lines < 5 || lines > most || len(records) < 5 || len(records) > most {
		t.Errorf("100 guesses are %d lines in the log and %d in the record", lines, len(records))
	}
	if all := log.String() + fmt.Sprint(records); strings.Contains(all, "guess-") {
		t.Errorf("what was guessed is written down: %s", all)
	}
	for _, ev := range records {
		if ev.Type == rights.AuditRefused && ev.Remote == "" {
			t.Errorf("the record does not say who: %+v", ev)
		}
	}
}

// One name gets only a part of the host's resources, under any ids of its connections.
func TestOneNameHasItsPart(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-a", "machine-b"), MaxConnections: 80, MaxTerminals: 3})
	var held []*viewer
	for i := range 20 { // a fourth
		held = append(held, as(t, url, "machine-a", fmt.Sprint("a", i), viewOptions{resume: true}))
	}
	if _, err := wsconn.Dial(t.Context(), url+"?tkn=machine-a", wsconn.Options{}); err == nil {
		t.Error("one name has more than its part of the connections")
	}
	b := as(t, url, "machine-b", "b", viewOptions{})
	b.create("ahp-terminal:/b")
	for i := range 3 {
		held[i].create(fmt.Sprint("ahp-terminal:/a", i))
	}
	if err := held[4].call(ahp.MethodCreateTerminal, clientTerminal("ahp-terminal:/a4", "a4"), nil); code(err) != int64(jsonrpc.CodeOverloaded) {
		t.Errorf("a fourth terminal of a machine that may have three: %v", err)
	}
	held[0].close() // its terminal waits for it
	if err := held[4].call(ahp.MethodCreateTerminal, clientTerminal("ahp-terminal:/a4", "a4"), nil); code(err) != int64(jsonrpc.CodeOverloaded) {
		t.Errorf("while a terminal waits for its owner: %v", err)
	}
	must.Do(t, held[1].call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: "ahp-terminal:/a1"}, nil))
	held[4].create("ahp-terminal:/a4")
	testkit.Eventually(t, patience, "the place of a connection is free again", func() bool {
		ch, err := wsconn.Dial(t.Context(), url+"?tkn=machine-a", wsconn.Options{})
		if err == nil {
			ch.Close()
		}
		return err == nil
	})
}

// A machine that creates and disposes in a loop is slowed down, and one that begins anew
// is not.
func TestCreatingInALoopIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		near, far := testkit.Channels()
		served := make(chan error, 1)
		go func() { served <- host.ServeAs(h, far, rights.Principal{Name: "m", Role: rights.RoleMachine}) }()
		v := newViewer(t, near, "m")
		v.initialize(viewOptions{})
		made := func(n int) (count int) {
			for range n {
				if err := v.call(ahp.MethodCreateTerminal, clientTerminal(uri, "m"), nil); err != nil {
					if code(err) != int64(jsonrpc.CodeOverloaded) {
						t.Fatal(err)
					}
					continue
				}
				count++
				must.Do(t, v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil))
			}
			return count
		}
		if n := made(1000); n != 256 {
			t.Errorf("%d terminals at once, want 256", n)
		}
		time.Sleep(10 * time.Second)
		if n := made(1000); n != 160 {
			t.Errorf("%d terminals ten seconds later, want 160", n)
		}
		v.close()
		<-served
	})
}

// Titles that change as fast as they can are few lists for who watches the catalogue, and
// the last title is among them.
func TestTitlesInAFloodAreFewLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{})
		owner.create(uri)
		v := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI}})
		began := time.Now()
		for i := range 5000 {
			owner.dispatch(uri, ahp.TerminalTitleChanged{Title: fmt.Sprint("title ", i)})
		}
		owner.ping()
		v.await("the last title", func() bool { return len(v.root.Terminals) == 1 && v.root.Terminals[0].Title == "title 4999" })
		v.mu.Lock()
		defer v.mu.Unlock()
		if took := time.Since(began); len(v.envelopes) > 5 || took > 100*time.Millisecond {
			t.Errorf("%d lists, the last one after %v", len(v.envelopes), took)
		}
	})
}

// Who watches is on record however it subscribed, once for each connection.
func TestEveryWatcherIsOnRecord(t *testing.T) {
	var mu sync.Mutex
	watched := map[string]int{}
	_, url := serve(t, host.Options{Access: newUsers("machine-a", "observer-o"), Audit: func(ev rights.AuditEvent) {
		mu.Lock()
		defer mu.Unlock()
		if ev.Type == rights.AuditSubscribed {
			watched[ev.Client+ev.Terminal+ev.Detail]++
		}
	}})
	as(t, url, "machine-a", "laptop", viewOptions{resume: true}).create(uri)
	as(t, url, "observer-o", "first", viewOptions{subs: []string{uri}})
	v := as(t, url, "observer-o", "later", viewOptions{})
	for range 3 {
		must.Do(t, v.subscribe(uri))
	}
	again := as(t, url, "observer-o", "first", viewOptions{noInit: true})
	must.Do(t, again.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "first", Subscriptions: []string{uri}}, nil))
	_, list := ask(t, url, visit{path: "/plain", token: "observer-o"})
	_, rest, _ := strings.Cut(list, `href="/terminals/`)
	id, _, _ := strings.Cut(rest, `"`)
	ask(t, url, visit{path: "/terminals/" + id, token: "observer-o"})
	agent := must.Get(overHTTP(t, url, "observer-o", nil))(t)
	for range 3 {
		use(t, agent, "read_terminal", map[string]any{"terminalId": strings.TrimSuffix(id, ".txt")}, &struct{}{})
	}
	want := map[string]int{"first" + uri: 2, "later" + uri: 1, uri + "as text": 1, uri + "MCP": 1}
	testkit.Eventually(t, patience, "who watches is on record", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprint(watched) == fmt.Sprint(want)
	})
}

// A bug that the text of one terminal runs into keeps nobody from the text of others,
// however often it is asked for.
func TestABugCostsOneDownload(t *testing.T) {
	h := testHost(t, host.Options{Token: secret})
	broken, whole := host.NewFeed(h, "ahp-terminal:/broken"), host.NewFeed(h, "ahp-terminal:/whole")
	broken.Text("broken")
	whole.Text("whole")
	broken.Break()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	get := func(f *host.Feed) (answer *httptest.ResponseRecorder, bug any) {
		defer func() { bug = recover() }() // as the server does
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, f.TextPath(), nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		answer = httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		return answer, nil
	}
	for range 5 {
		if answer, bug := get(broken); bug == nil {
			t.Fatalf("the broken one is answered %d %s", answer.Code, answer.Body)
		}
	}
	if answer, bug := get(whole); bug != nil || answer.Code != http.StatusOK || !strings.HasPrefix(answer.Body.String(), "whole") {
		t.Errorf("then the whole one is answered %d %q, bug %v", answer.Code, answer.Body, bug)
	}
}

// Where the least that terminals keep is more than the bound, a look at all of them is
// worth it only after much was added.
func TestRoomIsNotLookedForInVain(t *testing.T) {
	const most = 1 << 20
	h := testHost(t, host.Options{MaxMemory: most})
	line := strings.Repeat("x", 98) + "\r\n"
	var feeds []*host.Feed
	for i := range 400 {
		feeds = append(feeds, host.NewFeed(h, fmt.Sprint("ahp-terminal:/", i)))
		feeds[i].Text(strings.Repeat(line, 40))
	}
	floor, _, _ := h.Memory()
	if floor <= most {
		t.Fatalf("they keep %d bytes, which is within the bound", floor)
	}
	kept := 0
	for range testkit.Load(1000, 300) {
		feeds[0].Text(line)
		kept = max(kept, len(feeds[0].Recorded()))
		if counted, real, _ := h.Memory(); counted != real || counted > floor+most/8 {
			t.Fatalf("it counts %d bytes, and there are %d; at first there were %d", counted, real, floor)
		}
	}
	if kept < 8<<10 {
		t.Errorf("all are looked at each time: the one that prints keeps at most %d bytes", kept)
	}
	for _, f := range feeds[20:] {
		f.Remove()
	}
	for range 2000 {
		for _, f := range feeds[:20] {
			f.Text(line)
		}
	}
	if counted, _, _ := h.Memory(); counted > most {
		t.Errorf("with %d terminals there are %d bytes, at most %d should be", 20, counted, most)
	}
}

// Command lines that are kept for readers count towards the bound of all terminals
// together.
func TestMemoryOfCommandLines(t *testing.T) {
	const most = 8 << 20
	h := testHost(t, host.Options{MaxMemory: most})
	var feeds []*host.Feed
	for i := range 40 {
		f := host.NewFeed(h, fmt.Sprint("ahp-terminal:/", i))
		for n := range 15 {
			id := fmt.Sprint(n)
			f.Act(ahp.TerminalCommandExecuted{CommandID: id, CommandLine: strings.Repeat("x", 64<<10)})
			f.Act(ahp.TerminalCommandFinished{CommandID: id})
		}
		feeds = append(feeds, f)
	}
	lines := 0
	for _, f := range feeds {
		lines += f.Lines()
	}
	if lines > most {
		t.Errorf("of command lines there are %d bytes", lines)
	}
	if counted, real, _ := h.Memory(); counted != real || real > most {
		t.Errorf("it counts %d bytes, and there are %d; at most %d should be", counted, real, most)
	}
}

// One name has a part of the requests that last, too: pages and agents with its tokens
// keep nobody else out.
func TestOneNameHasItsPartOfRequests(t *testing.T) {
	_, base := serve(t, host.Options{Access: newUsers("observer-ann", "observer-ben"), MaxConnections: 16})
	follow := func(token string) (status int, leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(base, "ws")+"/events", nil))(t)
		r.Header.Set("Authorization", "Bearer "+token)
		answer := must.Get(http.DefaultClient.Do(r))(t)
		leave = func() { cancel(); answer.Body.Close() }
		t.Cleanup(leave)
		return answer.StatusCode, leave
	}
	var first func()
	for i := range 16 {
		status, leave := follow("observer-ann")
		if status != http.StatusOK {
			t.Fatalf("request %d: %d", i, status)
		}
		if i == 0 {
			first = leave
		}
	}
	if status, _ := follow("observer-ann"); status != http.StatusServiceUnavailable {
		t.Errorf("one more of the same name: %d", status)
	}
	if status, _ := follow("observer-ben"); status != http.StatusOK {
		t.Errorf("another name: %d", status)
	}
	first()
	testkit.Eventually(t, patience, "there is a place again", func() bool { status, leave := follow("observer-ann"); leave(); return status == http.StatusOK })
}

// Text counts in its encoded form: a control character takes six bytes.
func TestMemoryOfEscapedText(t *testing.T) {
	const most = 4 << 20
	h := testHost(t, host.Options{MaxMemory: most, LogBytes: 4 << 10})
	var feeds []*host.Feed
	for i := range 8 {
		feeds = append(feeds, host.NewFeed(h, fmt.Sprint("ahp-terminal:/", i)))
	}
	for range testkit.Load(60, 20) {
		for _, f := range feeds {
			f.Text(strings.Repeat("\x1b", 8<<10))
			f.Text(strings.Repeat("x", 8<<10))
		}
	}
	escaped := 0
	for _, f := range feeds {
		text := f.Recorded()
		escaped += len(text) + 5*strings.Count(text, "\x1b")
	}
	if counted, real, _ := h.Memory(); counted != real || counted > most || escaped > most || escaped < most/4 {
		t.Errorf("it counts %d bytes, and there are %d, %d of text; at most %d should be", counted, real, escaped, most)
	}
}

// The screens that terminals keep of dropped output count, too: too large ones are given
// up, and are unknown then.
func TestMemoryOfScreens(t *testing.T) {
	const most = 4 << 20
	runtime.GC()
	var before, m runtime.MemStats
	runtime.ReadMemStats(&before) // tests that ran before have left something
	h := testHost(t, host.Options{MaxMemory: most, Scrollback: 128 << 10, LogBytes: 64 << 10})
	var small, large []*host.Feed
	for i := range 8 {
		f := host.NewFeed(h, fmt.Sprint("ahp-terminal:/large", i))
		f.Act(ahp.TerminalResized{Cols: 500, Rows: 500})
		for n := range 4 {
			for y := range 500 { // 500x500 cells take 4 MB
				f.Text(fmt.Sprintf("\x1b[%d;1H\x1b[3%dm%s", y+1, (y+n)%8, strings.Repeat("x", 500)))
			}
		}
		large = append(large, f)
		f = host.NewFeed(h, fmt.Sprint("ahp-terminal:/small", i))
		f.Text("\x1b[HTHE HEADER")
		for range 40 {
			f.Text(strings.Repeat("\x1b[4;1H\x1b[Kcounter", 500))
		}
		small = append(small, f)
	}
	if counted, real, _ := h.Memory(); counted != real || counted > most {
		t.Errorf("it counts %d bytes, and there are %d; at most %d should be", counted, real, most)
	}
	runtime.GC()
	runtime.ReadMemStats(&m)
	if limit := before.HeapAlloc + 2*most + 24<<20; m.HeapAlloc > limit {
		t.Errorf("the heap has %d bytes, more than %d", m.HeapAlloc, limit)
	}
	for _, f := range small {
		if text, truncated := f.Screen(); truncated || !strings.HasPrefix(text, "THE HEADER") {
			t.Errorf("a small terminal shows %.100q, truncated %t", text, truncated)
		}
	}
	lost := 0
	for _, f := range large {
		if _, truncated := f.Screen(); truncated {
			lost++
		}
	}
	if lost == 0 {
		t.Error("no screen was given up")
	}
}
