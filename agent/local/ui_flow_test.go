package local_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// at returns a number of a message.
func (m said) at(field string) int {
	n, ok := m[field].(float64)
	if !ok {
		return -1
	}
	return int(n)
}

func TestHistoryIsTheNewestLines(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	var all strings.Builder
	for i := range 3000 {
		line := fmt.Sprintf("%04d ä %s\n", i, strings.Repeat("x", 40))
		all.WriteString(line)
		child.Print(line)
	}
	w.written(tm.ID, all.Len())
	u := w.ui()
	u.ask("pty:attach", tm.ID)
	got := u.next()
	_, history := got.drawn()
	if !strings.HasSuffix(all.String(), history) || len(history) > local.HistorySize || len(history) < local.HistorySize-100 {
		t.Errorf("the history has %d bytes and is not the end", len(history))
	}
	if all.String()[got.at("offset")-1] != '\n' {
		t.Error("the history does not begin with a line")
	}
	if got["truncated"] != true || got.at("end") != all.Len() || got.at("offset") != all.Len()-len(history) {
		t.Errorf("offset %d, end %d, truncated %v", got.at("offset"), got.at("end"), got["truncated"])
	}
	// One line without an end is cut at a character.
	long, child := w.spawn("long")
	text := strings.Repeat("€", 30_000)
	child.Print(text)
	w.written(long.ID, len(text))
	u.ask("pty:attach", long.ID)
	got = u.nextOf("pty:attached")
	_, history = got.drawn()
	if !strings.HasSuffix(text, history) || len(history) < local.HistorySize-8 || len(history) > local.HistorySize || strings.ContainsRune(history, '\ufffd') {
		t.Errorf("%d bytes of a long line", len(history))
	}
}

// written waits until the terminal has recorded so many bytes.
func (w *world) written(id string, n int) {
	w.t.Helper()
	testkit.Eventually(w.t, patience, "output is recorded", func() bool {
		got, err := w.client.Find(w.t.Context(), id)
		return err == nil && got.Bytes == int64(n)
	})
}

func TestAttachSince(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 64 << 10})
	tm, child := w.spawn("a")
	child.Print("0123456789")
	w.written(tm.ID, 10)
	u := w.ui()
	for _, c := range []struct {
		since     int
		offset    int
		history   any
		truncated any
	}{
		{4, 4, "456789", nil},
		{10, 10, nil, nil},
		{0, 0, "0123456789", nil},
		{11, 0, "0123456789", nil}, // no such offset: all from the start
	} {
		u.ask("pty:attach", tm.ID, "since", c.since)
		got := u.nextOf("pty:attached")
		if got.at("offset") != c.offset || got["history"] != c.history || got["truncated"] != c.truncated {
			t.Errorf("since %d: %v", c.since, got)
		}
	}
	child.Print(strings.Repeat("x", 20_000))
	u.nextOf("pty:output")
	u.ask("pty:attach", tm.ID, "since", 10)
	if got := streamText(u, 20_000); got != strings.Repeat("x", 20_000) {
		t.Errorf("since, with much behind it: %d bytes", len(got))
	}
	for range 10 {
		child.Print(strings.Repeat("y", 9_999) + "\n")
	}
	w.written(tm.ID, 10+20_000+100_000)
	u.settled()
	u.ask("pty:attach", tm.ID, "since", 10)
	if got := u.nextOf("pty:attached"); got["truncated"] != true || got.at("offset") <= 20_010 {
		t.Errorf("since what is gone: offset %d, truncated %v", got.at("offset"), got["truncated"])
	}
}

// streamText reads attached and output until there are n bytes.
func streamText(u *ui, n int) string {
	var all []said
	for len(text(all)) < n {
		all = append(all, u.next())
	}
	return text(all)
}

// What a terminal prints to ask or to write a clipboard reaches no interface: it would
// answer in the person's name.
func TestQueriesAndClipboardStayInside(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	must.Get(w.client.As("a").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
	background := <-w.children
	u, watcher := w.ui(), w.ui()
	u.settled()
	watcher.settled()
	u.ask("pty:attach", tm.ID)
	u.nextOf("pty:attached")
	var want string
	for _, c := range []struct{ print, shows string }{
		{"a\x1b[cb", "ab"}, {"\x1b[6n", ""}, {"\x1b[>q", ""}, {"\x1b[21t", ""}, {"\x05", ""},
		{"\x1b]52;c;c2VjcmV0\x07", ""}, {"\x1b]52;c;?\x1b\\", ""}, {"\x1b]10;?\x07", ""}, {"\x1b]4;1;?\x07", ""},
		{"\x1bP$qm\x1b\\", ""}, {"\x1bP+q544e\x1b\\", ""}, {"\x1b]633;A\x07", ""},
		{"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"}, {"\xff\xfe", "\ufffd\ufffd"}, {"\u2028\u0000", "\u2028\u0000"}, {"end\n", "end\n"},
	} {
		for i := range len(c.print) { // at every border
			child.Print(c.print[i : i+1])
		}
		background.Print(c.print)
		want += c.shows
	}
	u.shows(want)
	again := w.ui()
	again.ask("pty:attach", tm.ID)
	again.shows(want)
	got := ""
	for !strings.HasSuffix(got, "end\n") {
		e := watcher.event("output")
		if e["terminal"].(map[string]any)["id"] == tm.ID {
			t.Error("an event for output of the person's terminal")
		}
		got += e["output"].(string)
	}
	if strings.ContainsAny(got, "\x05") || strings.Contains(got, "52;") || strings.Contains(got, "[c") {
		t.Errorf("in the background: %q", got)
	}
}

// flood prints lines until stop is called, which returns how many bytes.
func flood(child *testkit.Child) (stop func() int) {
	end, done := make(chan struct{}), make(chan int)
	go func() {
		line := strings.Repeat(strings.Repeat("f", 99)+"\n", 40)
		for n := 0; ; n += len(line) {
			select {
			case <-end:
				done <- n
				return
			default:
				child.Print(line)
			}
		}
	}()
	return sync.OnceValue(func() int { close(end); return <-done })
}

// A client that does not read for a while is slow alone: it harms no other, loses its
// place, and is told by a fresh pty:attached with the newest output.
func TestStalledClientHarmsNobodyAndIsResynchronised(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 256 << 10})
	tm, child := w.spawn("flood")
	quiet, echo := w.spawn("quiet")
	stalled, healthy := w.ui(), w.ui()
	for _, u := range []*ui{stalled, healthy} {
		u.ask("pty:attach", tm.ID)
		u.nextOf("pty:attached")
		u.ask("pty:attach", quiet.ID)
		u.nextOf("pty:attached")
	}
	before := heap()
	stop := flood(child)
	defer stop()
	testkit.Eventually(t, patience, "more than the stalled one can have is printed", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Bytes > 16<<20
	})
	// The healthy one hears of another terminal in the middle of the flood.
	for i := range 20 {
		echo.Print(fmt.Sprintf("%02d", i))
		for {
			m := healthy.nextOf("pty:output")
			if m["id"] == quiet.ID {
				break
			}
		}
	}
	// What is being printed is on the heap, too, until the next collection: the least of
	// some looks counts.
	testkit.Eventually(t, patience, "not more than 8 MiB more on the heap while a client does not read", func() bool {
		return int64(heap())-int64(before) <= 8<<20
	})
	total := stop()
	w.written(tm.ID, total)
	// Now it reads: what was on its way, then a fresh start at the newest.
	sent, resyncs, lost := 0, 0, 0
	for sent < total {
		m := stalled.next()
		if m["id"] != tm.ID {
			continue
		}
		switch m["type"] {
		case "pty:attached":
			if m.at("lost") != m.at("offset")-sent || m["truncated"] != true {
				t.Errorf("resynchronised at %d with %d lost, truncated %v; it had %d", m.at("offset"), m.at("lost"), m["truncated"], sent)
			}
			resyncs, lost = resyncs+1, lost+m.at("lost")
			if _, h := m.drawn(); len(h) > local.HistorySize || !strings.HasPrefix(h, "ff") {
				t.Errorf("history of %d bytes, %.10q", len(h), h)
			}
		case "pty:output":
			if m.at("offset") != sent {
				t.Fatalf("output at %d, it had %d: a gap without a word", m.at("offset"), sent)
			}
		}
		sent = m.at("end")
	}
	if resyncs == 0 || lost == 0 || sent != total {
		t.Errorf("%d resynchronisations, %d of %d bytes lost, at %d", resyncs, lost, total, sent)
	}
	child.End(0)
	for m := stalled.next(); m["type"] != "pty:exit"; m = stalled.next() {
		if m["id"] == tm.ID {
			t.Errorf("%v before the exit", m)
		}
	}
}

// heap is the memory in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func TestClientThatNeverReadsIsGivenUp(t *testing.T) {
	w := serve(t, local.Options{WriteTimeout: 300 * time.Millisecond}, term.Options{})
	tm, child := w.spawn("a")
	u := w.ui()
	u.ask("pty:attach", tm.ID)
	u.nextOf("pty:attached")
	stop := flood(child)
	defer stop()
	testkit.Eventually(t, patience, "it is let go", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Attached == 0
	})
}

func TestAcknowledgingClientGetsAWindow(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 4 << 20})
	tm, child := w.spawn("a")
	u := w.ui()
	u.ask("pty:attach", tm.ID, "ack", true)
	u.nextOf("pty:attached")
	const total = 2 << 20
	for range total / 4096 {
		child.Print(strings.Repeat("x", 4095) + "\n")
	}
	w.written(tm.ID, total)
	got := 0
	for _, m := range u.settled() {
		if m["type"] == "pty:output" {
			got = m.at("end")
		}
	}
	for got < local.AckWindow {
		got = u.nextOf("pty:output").at("end")
	}
	if left := streamed(u.settled()); len(left) > 0 || got > local.AckWindow+64<<10 {
		t.Errorf("%d bytes and %d messages more without an acknowledgement", got, len(left))
	}
	for got < total {
		u.ask("pty:ack", tm.ID, "end", got)
		m := u.nextOf("pty:output")
		if m.at("offset") != got {
			t.Fatalf("goes on at %d, had %d", m.at("offset"), got)
		}
		got = m.at("end")
	}
}

func TestTenThousandAttachments(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	child.Print("some output\n")
	w.written(tm.ID, 12)
	u := w.ui()
	u.settled()
	before, goroutines := heap(), runtime.NumGoroutine()
	rounds := testkit.Load(10_000, 2_000)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range rounds {
			for _, kind := range []string{"pty:attach", "pty:detach"} {
				_ = u.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"`+kind+`","id":"`+tm.ID+`"}`))
			}
		}
	}()
	for range rounds {
		if m := u.nextOf("pty:attached"); m["history"] != "some output\n" {
			t.Fatal(m)
		}
	}
	<-sent // the last detach, too
	if left := u.settled(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	got, err := w.client.Find(t.Context(), tm.ID)
	if err != nil || got.Attached != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	w.client.Close()
	testkit.Eventually(t, patience, "goroutines are gone", func() bool { return runtime.NumGoroutine() <= goroutines })
	testkit.Eventually(t, patience, "the heap is as large as before, give or take 2 MiB", func() bool { return int64(heap())-int64(before) <= 2<<20 })
	child.Print("x")
	if left := u.settled(); len(left) > 0 {
		t.Errorf("still attached: %v", left)
	}
}

func TestTooManyAttachments(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := serve(t, local.Options{}, term.Options{MaxTerminals: local.MaxStreams + 1})
	go func() {
		for range w.children { // nobody plays them
		}
	}()
	u := w.ui()
	for range local.MaxStreams {
		tm := must.Get(w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
		u.ask("pty:attach", tm.ID)
		u.nextOf("pty:attached")
	}
	tm := must.Get(w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
	u.ask("pty:attach", tm.ID)
	if got := u.nextOf("pty:error"); got["code"] != "limit" {
		t.Error(got)
	}
	close(w.children)
}

func TestInterfacesHearOfTheEnd(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("a")
	u := w.ui()
	go w.server.Drain()
	if got := closed(t, u); got.Code != websocket.StatusGoingAway || !strings.Contains(got.Reason, "shutting down") {
		t.Errorf("closed with %v", got)
	}
}

// deaf is a child that does not read its input.
type deaf struct{ *testkit.Child }

func (d deaf) Write(p []byte) (int, error) {
	<-d.Closed()
	return 0, io.ErrClosedPipe
}

// Input for a child that does not read ends in an error, not in silence, and holds no
// other client up.
func TestInputThatIsNotTaken(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return deaf{testkit.NewChild()}, nil }})
	tm := must.Get(w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
	u, other := w.ui(), w.ui()
	for range 8 { // two more than a terminal queues
		u.ask("pty:input", tm.ID, "data", strings.Repeat("x", 200<<10))
	}
	other.ask("pty:resize", tm.ID, "cols", 7, "rows", 7)
	testkit.Eventually(t, patience, "another client resizes", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Cols == 7
	})
	if got := u.nextOf("pty:error"); got["code"] != "timed_out" || !strings.Contains(got["error"].(string), "does not read its input") {
		t.Errorf("%v", got)
	}
}
