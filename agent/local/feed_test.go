package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// reader is a child that reads a pipe as its standard input.
type reader struct {
	*testkit.Child

	mu     sync.Mutex
	read   []byte
	most   int // bytes that it takes at a time, if not 0
	ended  bool
	closed bool // it reads no more
}

func (r *reader) Feed(_ context.Context, off int64, p []byte, last bool) (next int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.ended && !last {
		return int64(len(r.read)), os.ErrClosed
	}
	if r.most > 0 {
		p = p[:min(len(p), r.most)]
	}
	if skip := int64(len(r.read)) - off; skip < int64(len(p)) {
		r.read = append(r.read, p[max(skip, 0):]...)
	}
	r.ended = r.ended || last
	return int64(len(r.read)), nil
}

func (r *reader) got() (read string, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.read), r.ended
}

// serveReader is serve for terminals whose child is r.
func serveReader(t *testing.T, o local.Options, r *reader) *world {
	t.Helper()
	r.Child = testkit.NewChild()
	return serve(t, o, term.Options{Start: func(_ term.ID, c pty.Command) (term.PTY, error) {
		if !c.Feed {
			t.Error("the child has no pipe")
		}
		return r, nil
	}})
}

// feed starts a terminal for a client and opens its standard input.
func feed(t *testing.T, c *localclient.Client, argv ...string) (*localclient.Feeder, localapi.Terminal) {
	t.Helper()
	tm := must.Get(c.Spawn(t.Context(), localapi.SpawnRequest{Command: argv, Cwd: testkit.Abs("/"), Feed: true}))(t)
	f := must.Get(c.Feed(t.Context(), tm.ID))(t)
	t.Cleanup(f.Close)
	return f, tm
}

// taken waits for the daemon's next message, which must say that the child has so many
// bytes.
func taken(t *testing.T, f *localclient.Feeder, want int64) {
	t.Helper()
	if got, closed, err := f.Next(t.Context()); got != want || closed || err != nil {
		t.Fatalf("the child has %d bytes, closed %t, %v; want %d", got, closed, err, want)
	}
}

// A client writes the standard input in pieces, is told how much of it the child has, and
// ends it.
func TestFeed(t *testing.T) {
	r := &reader{most: 3}
	w := serveReader(t, local.Options{}, r)
	f, tm := feed(t, w.client, "x")
	taken(t, f, 0)
	if _, err := w.client.Feed(t.Context(), tm.ID); codeOfError(err) != localapi.CodeExists {
		t.Errorf("a second writer: %v", err)
	}
	for off, text := range []string{"a\x03\x00\xff\r\n", "bcd\x04"} {
		must.Do(t, f.Write(t.Context(), int64(off)*6, []byte(text)))
		taken(t, f, int64(off)*6+int64(len(text)))
	}
	must.Do(t, f.Write(t.Context(), 10, nil))
	if _, closed, err := f.Next(t.Context()); !closed || err != nil {
		t.Errorf("after the end: %t, %v", closed, err)
	}
	if got, ended := r.got(); got != "a\x03\x00\xff\r\nbcd\x04" || !ended {
		t.Errorf("the child has %q, ended %t", got, ended)
	}
	if r.Typed() != "" {
		t.Errorf("%q was typed", r.Typed())
	}
	again := must.Get(w.client.Feed(t.Context(), tm.ID))(t)
	defer again.Close()
	if _, closed, err := again.Next(t.Context()); !closed || err != nil {
		t.Errorf("an input that has ended: %t, %v", closed, err)
	}
}

// When the client is gone, the child's input ends. When the daemon ends before, the input
// stays open for the next daemon.
func TestFeedEndsWithItsClient(t *testing.T) {
	for _, drain := range []bool{false, true} {
		r := &reader{}
		w := serveReader(t, local.Options{}, r)
		f, _ := feed(t, w.client, "x")
		taken(t, f, 0)
		must.Do(t, f.Write(t.Context(), 0, []byte("half")))
		taken(t, f, 4)
		if drain {
			w.server.DrainKeeping()
			if _, closed, err := f.Next(t.Context()); closed || !errors.Is(err, localclient.ErrDropped) {
				t.Errorf("a daemon that ends says %t, %v", closed, err)
			}
			if got, ended := r.got(); got != "half" || ended {
				t.Errorf("after the daemon's end the child has %q, ended %t", got, ended)
			}
			continue
		}
		f.Close()
		testkit.Eventually(t, patience, "the input ends", func() bool { _, ended := r.got(); return ended })
	}
}

// A client whose command reads no more is told so, and one whose command has a terminal
// as its input is refused.
func TestFeedOfAChildThatReadsNoMore(t *testing.T) {
	r := &reader{}
	w := serveReader(t, local.Options{}, r)
	f, _ := feed(t, w.client, "x")
	taken(t, f, 0)
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	must.Do(t, f.Write(t.Context(), 0, []byte("x")))
	if _, closed, err := f.Next(t.Context()); !closed || err != nil {
		t.Errorf("%t, %v", closed, err)
	}
	plain := serve(t, local.Options{}, term.Options{})
	plain.spawn("a")
	if _, err := plain.client.Feed(t.Context(), "a"); codeOfError(err) != localapi.CodeExists {
		t.Errorf("a terminal as input: %v", err)
	}
}

// The policy judges an agent's input for a shell as if it were typed there, whatever is
// typed beside it. It does not judge input for a program that runs none of it.
func TestFeedOfAnAgentIsJudged(t *testing.T) {
	for _, c := range []struct {
		program string
		pieces  []string
		refused bool
	}{
		{"bash", []string{"ls\n", "\tgo build ./...\n"}, false},
		{"bash", []string{"echo gr\xc3", "\xb6\xc3\x9fe\n"}, false},
		{"bash", []string{"ls\n", "r", "m -rf /tmp/x\n"}, true},
		{"bash", []string{"\xff\n"}, true},
		{"cat", []string{"rm -rf /tmp/x\n", "\xff\x1b\n"}, false},
	} {
		e := must.Get(policy.New(policy.Options{Config: policyAllowing("bash", "cat")}))(t)
		r := &reader{}
		w := serveReader(t, local.Options{Policy: e}, r)
		agent := w.client.As("claude")
		f, tm := feed(t, agent, c.program)
		taken(t, f, 0)
		var off int64
		var refusal error
		for _, piece := range c.pieces {
			must.Do(t, f.Write(t.Context(), off, []byte(piece)))
			next, closed, err := f.Next(t.Context())
			if err != nil || closed {
				refusal = err
				break
			}
			off = next
			a := must.Get(agent.Attach(t.Context(), tm.ID, localclient.AttachOptions{}))(t)
			if err := a.Write(t.Context(), []byte("\x03")); err != nil { // does not change the piped line
				t.Error(err)
			}
			testkit.Eventually(t, patience, "it was typed", func() bool { return strings.HasSuffix(r.Typed(), "\x03") })
			a.Close()
		}
		if got, _ := r.got(); c.refused && (codeOfError(refusal) != localapi.CodeDenied || strings.Contains(got, "m -rf") || strings.Contains(got, "\xff")) {
			t.Errorf("%s, %q: %v; the child has %q", c.program, c.pieces, refusal, got)
		} else if !c.refused && (refusal != nil || got != strings.Join(c.pieces, "")) {
			t.Errorf("%s, %q: %v; the child has %q", c.program, c.pieces, refusal, got)
		}
	}
}

// A script's line that the terminal would cut is refused, and with it the rest. A
// terminal that takes keys gets it whole.
func TestAttachedScriptsLines(t *testing.T) {
	for _, lines := range []bool{true, false} {
		t.Run(fmt.Sprintf("lines=%t", lines), func(t *testing.T) { // each with a server that ends
			attachedScriptsLines(t, lines)
		})
	}
}

func attachedScriptsLines(t *testing.T, lines bool) {
	child := &looked{Child: testkit.NewChild(), lines: lines}
	w := serve(t, local.Options{}, term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return child, nil }})
	must.Get(w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Name: "a", Cwd: testkit.Abs("/")}))(t)
	if pty.MaxLine > 1<<20 {
		t.Skip("consoles cut no lines")
	}
	whole := strings.Repeat("y", pty.MaxLine) + "\n"
	long := "y" + whole
	script := w.attach("a", localclient.AttachOptions{Lines: true})
	for _, text := range []string{"one\n", whole, "two\n" + long + "three\n", "four\n"} {
		must.Do(t, script.Write(t.Context(), []byte(text)))
	}
	want := "one\n" + whole + "two\n" + long + "three\nfour\n"
	if lines {
		want = "one\n" + whole + "two\n"
		if got := next(t, script); got.Type != localapi.ControlError || got.Error == nil || got.Error.Code != localapi.CodeTooLarge {
			t.Errorf("%+v", got)
		}
	}
	testkit.Eventually(t, patience, "the script's input was typed", func() bool { return len(child.Typed()) >= len(want) })
	person := w.attach("a", localclient.AttachOptions{}) // whose keys nobody counts
	must.Do(t, person.Write(t.Context(), []byte(long)))
	testkit.Eventually(t, patience, "the person's, too", func() bool { return len(child.Typed()) >= len(want+long) })
	if got := child.Typed(); got != want+long {
		t.Errorf("%d bytes were typed, want %d", len(got), len(want+long))
	}
}

// looked is a child whose terminal takes lines, or keys.
type looked struct {
	*testkit.Child
	lines bool
}

func (l *looked) Look() (pty.Look, error) { return pty.Look{Lines: l.lines}, nil }

// codeOfError is the code of the daemon's error.
func codeOfError(err error) localapi.Code {
	e, _ := errors.AsType[*localapi.Error](err)
	if e == nil {
		return ""
	}
	return e.Code
}

// JSON with text that would be replaced is refused at each door, and nothing is started.
func TestTextThatWouldBeReplacedIsRefused(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	for _, text := range []string{`\ud83d`, "a\xe9"} {
		body := `{"command":["` + text + `"],"cwd":"/"}`
		for _, path := range []string{"/v1/terminals", "/pty/spawn"} {
			resp := must.Get(w.client.HTTP().Post("http://tether"+path, "application/json", strings.NewReader(body)))(t)
			resp.Body.Close()
			if resp.StatusCode != 400 {
				t.Errorf("%s, %q: %s", path, text, resp.Status)
			}
		}
	}
	select {
	case <-w.children:
		t.Error("a command was started")
	default:
	}
}
