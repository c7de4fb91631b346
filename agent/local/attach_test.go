package local_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/screen"
)

func TestAttachBothWays(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	child.Print("before\n")
	testkit.Eventually(t, patience, "it was taken", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Bytes == 7
	})
	whole := w.attach("a", localclient.AttachOptions{FromStart: true})
	tail := w.attach("a", localclient.AttachOptions{Tail: 100})
	now := w.attach("a", localclient.AttachOptions{})
	reads(t, whole, "before\n")
	reads(t, tail, "before\n")
	testkit.Eventually(t, patience, "three are attached", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Attached == 3
	})
	child.Print("\x1b]633;A\x07now \xff\n")
	for _, a := range []*localclient.Attachment{whole, tail, now} {
		reads(t, a, "now \xff\n")
	}
	big := strings.Repeat("typed ", 50_000) // more than a frame
	for _, text := range []string{"x", big} {
		must.Do(t, whole.Write(t.Context(), []byte(text)))
	}
	testkit.Eventually(t, patience, "what was typed arrives", func() bool { return child.Typed() == "x"+big })

	must.Do(t, tail.Resize(t.Context(), 100, 40))
	resized := localapi.Control{Type: localapi.ControlResized, Cols: 100, Rows: 40}
	for _, a := range []*localclient.Attachment{whole, tail, now} {
		if got := next(t, a); !cmp.Equal(got, resized) {
			t.Errorf("%+v, want %+v", got, resized)
		}
	}
	child.Print("last")
	child.End(9)
	for _, a := range []*localclient.Attachment{whole, tail, now} {
		reads(t, a, "last")
		if got, want := next(t, a), (localapi.Control{Type: localapi.ControlExit, Code: 9}); !cmp.Equal(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		if _, err := a.Next(t.Context()); !errors.Is(err, localclient.ErrDropped) {
			t.Errorf("after the exit: %v", err)
		}
	}
	late := w.attach("a", localclient.AttachOptions{Tail: 4})
	reads(t, late, "last")
	if got := next(t, late); got.Type != localapi.ControlExit || got.Code != 9 {
		t.Errorf("attached after the exit: %+v", got)
	}
}

// A window that is gone ends its terminal where the program cannot be told.
func TestHangUp(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("a")
	a := w.attach("a", localclient.AttachOptions{})
	must.Do(t, a.HangUp(t.Context()))
	if got := next(t, a); got.Type != localapi.ControlExit {
		t.Errorf("%+v, want the exit", got)
	}
}

func TestBadInputIsAnswered(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	a := w.attach("a", localclient.AttachOptions{})
	for _, size := range [][2]uint16{{0, 0}, {0, 24}, {1001, 24}, {65535, 65535}} {
		must.Do(t, a.Resize(t.Context(), size[0], size[1]))
		if got := next(t, a); got.Type != localapi.ControlError || !strings.Contains(got.Message, "size") {
			t.Errorf("size %v: %+v", size, got)
		}
	}
	bare, _, err := websocket.Dial(t.Context(), "ws://"+localapi.Host+"/v1/terminals/a/attach", &websocket.DialOptions{HTTPClient: w.client.HTTP()})
	must.Do(t, err)
	defer bare.CloseNow()
	send := func(text string) error { return bare.Write(t.Context(), websocket.MessageText, []byte(text)) }
	for _, text := range []string{`{"type":"novelty","x":1}`, "garbage", `{"type":"resize","cols":70000}`, `{"type":"resize","cols":-1}`, `[]`,
		`{"type":"resize","cols":9,"rows":9,"message":"\ud83d"}`, `{"type":"resize","cols":9,"rows":9,"message":"` + "\xe9" + `"}`} {
		must.Do(t, send(text))
		if strings.Contains(text, "novelty") { // of a newer client: ignored
			continue
		}
		_, answer, err := bare.Read(t.Context())
		must.Do(t, err)
		if got, err := localapi.ParseControl(answer); err != nil || got.Type != localapi.ControlError {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	child.Print("alive")
	if c := reads(t, a, "alive"); len(c) > 0 {
		t.Errorf("unexpected %+v", c)
	}
	if got, _ := w.client.Find(t.Context(), tm.ID); got.Cols != 80 || got.Rows != 24 {
		t.Errorf("the size is %dx%d now", got.Cols, got.Rows)
	}

	a.Close()
	if err := send(strings.Repeat("x", 300<<10)); err != nil {
		t.Logf("the server was quicker: %v", err)
	}
	for err = nil; err == nil; {
		_, _, err = bare.Read(t.Context()) // first what was printed
	}
	if code := websocket.CloseStatus(err); code != -1 && code != websocket.StatusMessageTooBig {
		t.Errorf("oversized frame: %v", err)
	}
	testkit.Eventually(t, patience, "nobody is attached", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Attached == 0 && got.Exit == nil
	})
	for _, q := range []string{"?from=-1", "?tail=x", "?tail=99999999999999"} {
		resp := ask(t, w, "GET /v1/terminals/a/attach"+q+" HTTP/1.1\r\nHost: tether\r\n\r\n")
		if resp == nil || codeOf(t, resp) != localapi.CodeBadRequest {
			t.Errorf("%s: %+v", q, resp)
		}
	}
	_, err = w.client.Attach(t.Context(), "nothing", localclient.AttachOptions{})
	if localapi.ExitStatus(err) != localapi.ExitNoTerminal {
		t.Errorf("no terminal: %v", err)
	}
}

// A client that does not read is told its loss; meanwhile the terminal continues, and
// others see everything.
func TestStalledClient(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 64 << 10, Stall: time.Millisecond})
	_, child := w.spawn("a")
	stalled := w.attach("a", localclient.AttachOptions{FromStart: true})
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "line %d %s\n", i, strings.Repeat("x", 1000))
	}
	for rest := text.String(); rest != ""; {
		n := min(len(rest), 4000)
		child.Print(rest[:n])
		rest = rest[n:]
	}
	if _, err := w.client.Status(t.Context()); err != nil {
		t.Errorf("the daemon does not answer beside a stalled client: %v", err)
	}
	child.End(0)
	var got strings.Builder
	lost, lagged := int64(0), 0
	for {
		m := must.Get(stalled.Next(t.Context()))(t)
		got.Write(m.Data)
		if m.Control == nil {
			continue
		}
		if m.Control.Type == localapi.ControlExit {
			break
		}
		lost += m.Control.Lost
		lagged++
	}
	if lagged == 0 || int64(got.Len())+lost != int64(text.Len()) {
		t.Errorf("%d bytes came, %d were told lost (%d times), of %d", got.Len(), lost, lagged, text.Len())
	}
	if !strings.HasSuffix(text.String(), got.String()[got.Len()-50_000:]) {
		t.Error("what came last is not what was printed last")
	}
}

func TestClientThatNeverReadsIsDropped(t *testing.T) {
	w := serve(t, local.Options{WriteTimeout: 50 * time.Millisecond}, term.Options{LogBytes: 64 << 10, Stall: time.Millisecond})
	tm, child := w.spawn("a")
	a := w.attach("a", localclient.AttachOptions{})
	testkit.Eventually(t, patience, "it is dropped", func() bool {
		child.Print(strings.Repeat("x", 4000))
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Attached == 0
	})
	for {
		if _, err := a.Next(t.Context()); err != nil {
			if !errors.Is(err, localclient.ErrDropped) {
				t.Errorf("dropped: %v", err)
			}
			return
		}
	}
}

func TestDrainClosesAttachmentsInOrder(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	_, child := w.spawn("a")
	a := w.attach("a", localclient.AttachOptions{})
	child.Print("x")
	reads(t, a, "x")
	w.server.Drain()
	if got := next(t, a); got.Type != localapi.ControlDropped || !strings.Contains(got.Message, "shutting down") {
		t.Errorf("%+v", got)
	}
}

func TestAttachAndLeaveManyTimes(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 25 {
				a, err := w.client.Attach(t.Context(), "a", localclient.AttachOptions{FromStart: i%2 == 0})
				if err != nil {
					t.Error(err)
					return
				}
				if i%3 == 0 {
					_ = a.Write(t.Context(), []byte("y"))
				}
				a.Close()
			}
		})
	}
	for i := range 100 {
		child.Print(fmt.Sprintln(i))
	}
	wg.Wait()
	testkit.Eventually(t, patience, "nobody is attached", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Attached == 0
	})
}

// A client that vanishes in the middle of a frame takes nothing with it.
func TestHalfAFrame(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	conn := w.dial()
	const key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	fmt.Fprint(conn, "GET /v1/terminals/a/attach HTTP/1.1\r\nHost: tether\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+key+"\r\n")
	conn.Write([]byte{0x82, 0x85, 1, 2, 3, 4, 'h', 'a'}) // a binary frame of 5 bytes, with 2 of them
	attached := func(n int) func() bool {
		return func() bool {
			got, err := w.client.Find(t.Context(), tm.ID)
			return err == nil && got.Attached == n
		}
	}
	testkit.Eventually(t, patience, "it is attached", attached(1))
	conn.Close()
	testkit.Eventually(t, patience, "it is gone", attached(0))
	if child.Typed() != "" {
		t.Errorf("typed %q", child.Typed())
	}
}

func TestEnsureFindsARunningDaemon(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	if err := w.client.EnsureDaemon(t.Context(), localclient.Launch{Path: "/nonexistent", Output: "relative"}); err != nil {
		t.Errorf("with a daemon there: %v", err)
	}
}

func TestDrainDoesNotWaitForAStalledClient(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 64 << 10, Stall: time.Millisecond})
	_, child := w.spawn("a")
	w.attach("a", localclient.AttachOptions{}) // and never reads
	for range 1000 {
		child.Print(strings.Repeat("x", 4000))
	}
	began := time.Now()
	w.server.Drain()
	if took := time.Since(began); took > patience/2 {
		t.Errorf("took %v", took)
	}
}

// An agent's screen size does not count: it may not resize, and its request does not
// bound the person's screen.
func TestAgentsScreensBoundNobody(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm := must.Get(w.client.As("bob").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
	its := must.Get(w.client.As("bob").Attach(t.Context(), tm.ID, localclient.AttachOptions{}))(t)
	defer its.Close()
	must.Do(t, its.Resize(t.Context(), 1, 1))
	if got := next(t, its); got.Type != localapi.ControlError {
		t.Errorf("the agent is told %+v", got)
	}
	mine := w.attach(tm.ID, localclient.AttachOptions{})
	must.Do(t, mine.Resize(t.Context(), 100, 40))
	if got, want := next(t, mine), (localapi.Control{Type: localapi.ControlResized, Cols: 100, Rows: 40}); !cmp.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// An agent's input is judged at this door as at MCP's.
func TestTypedAtAttachmentsIsJudged(t *testing.T) {
	engine := must.Get(policy.New(policy.Options{Config: policyAllowing("bash")}))(t)
	w := serve(t, local.Options{Policy: engine}, term.Options{})
	tm := must.Get(w.client.As("bob").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"bash"}, Cwd: testkit.Abs("/")}))(t)
	child := <-w.children
	its := must.Get(w.client.As("bob").Attach(t.Context(), tm.ID, localclient.AttachOptions{}))(t)
	defer its.Close()
	must.Do(t, its.Write(t.Context(), []byte("rm x\r")))
	if got := next(t, its); got.Type != localapi.ControlError || !strings.Contains(got.Message, "blocked") {
		t.Errorf("the agent is told %+v", got)
	}
	must.Do(t, its.Write(t.Context(), []byte("ls\r")))
	testkit.Eventually(t, patience, "the rest was typed", func() bool { return child.Typed() == "ls\r" })
	must.Do(t, w.attach(tm.ID, localclient.AttachOptions{}).Write(t.Context(), []byte("rm y\r")))
	testkit.Eventually(t, patience, "the person may", func() bool { return child.Typed() == "ls\rrm y\r" })
}

// A person is told who can watch even while the terminal prints without a pause: most is
// seen then.
func TestLendingsAreReportedInAFlood(t *testing.T) {
	const ahead, most = 1 << 20, 32 << 20 // bytes
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	line := append(bytes.Repeat([]byte("x"), 78), "\r\n"...)
	print := func(n int) { child.Print(string(bytes.Repeat(line, n/len(line)+1))) }
	print(ahead)
	a := w.attach("a", localclient.AttachOptions{FromStart: true})
	h := must.Get(w.pool.As(term.User).Find(tm.ID))(t)
	must.Do(t, h.Lend("lab"))
	for n := 0; n < most; {
		m := must.Get(a.Next(t.Context()))(t)
		if m.Control != nil && m.Control.Type == localapi.ControlLent {
			if len(m.Control.Hosts) != 1 || m.Control.Hosts[0] != "lab" {
				t.Errorf("it is said that it is lent to %v", m.Control.Hosts)
			}
			return
		}
		n += len(m.Data)
		print(len(m.Data))
	}
	t.Errorf("after %d bytes nothing is said of the lending", most)
}

// Who attaches late sees the whole screen of a full-screen program, and then what it
// prints next, once.
func TestAttachDrawsTheScreen(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 256 << 10})
	m, child := w.spawn("counter")
	counter(child, 20_000)
	a := w.attach(m.ID, localclient.AttachOptions{Tail: 4 << 10, Screen: true})
	child.Print("\r\nlast")
	s := screen.NewState(80, 24)
	for !strings.HasSuffix(s.Text(), "last") {
		msg := must.Get(a.Next(t.Context()))(t)
		s.Write(msg.Data)
	}
	if got, want := s.Text(), "THE HEADER\n\n\ncounter 19999\nlast"; got != want {
		t.Errorf("it sees %q, want %q", got, want)
	}
	plain, lines := w.spawn("plain")
	lines.Print(strings.Repeat("a line\r\n", 4000))
	b := w.attach(plain.ID, localclient.AttachOptions{Tail: 4 << 10, Screen: true})
	if msg, err := b.Next(t.Context()); err != nil || strings.Contains(string(msg.Data), "\x1b") {
		t.Errorf("of plain lines it gets %.40q, %v; want them alone", msg.Data, err)
	}
}

// Who has missed output because they did not read it gets the whole screen of a
// full-screen program again, whatever theirs shows.
func TestAttachRedrawsAfterALoss(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 64 << 10, Stall: time.Millisecond})
	m, child := w.spawn("counter")
	child.Print("before\r\n")
	a := w.attach(m.ID, localclient.AttachOptions{Tail: 4 << 10, Screen: true})
	counter(child, 600_000) // more than sockets hold
	child.Print("\r\nlast")
	s := screen.NewState(80, 24)
	s.Write([]byte("\x1b[5;1Hof another time\x1b[2;3r\x1b[?6h\x1b[4h\x1b]0;half"))
	lost := false
	for !lost || !strings.HasSuffix(s.Text(), "last") {
		msg := must.Get(a.Next(t.Context()))(t)
		lost = lost || msg.Control != nil && msg.Control.Type == localapi.ControlLagged
		if lost {
			s.Write(msg.Data)
		}
	}
	if got, want := s.Text(), "THE HEADER\n\n\ncounter 599999\nlast"; got != want {
		t.Errorf("it sees %q, want %q", got, want)
	}
}
