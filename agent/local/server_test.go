package local_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/vocab"
)

func TestTerminals(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	ctx := t.Context()
	tm, child := w.spawn("build")
	want := localapi.Terminal{Name: "build", Title: "build", Command: []string{"x", "-y"}, Cwd: testkit.Abs("/"), Cols: 80, Rows: 24, Owner: "user",
		Visible: true, LentTo: []string{}, Loans: []localapi.Loan{}, Pid: 1}
	check.Equal(t, "spawned", want, tm, cmpopts.IgnoreFields(localapi.Terminal{}, "ID", "Started", "Input", "InputSince"))
	l, err := w.client.List(ctx)
	if err != nil || l.SchemaVersion != localapi.SchemaVersion || !cmp.Equal(l.Terminals, []localapi.Terminal{tm}, cmpopts.IgnoreFields(localapi.Terminal{}, "Input", "InputSince")) {
		t.Errorf("list: %+v, %v", l, err)
	}
	for _, ref := range []string{tm.ID, tm.ID[:8], "build"} {
		if got, err := w.client.Find(ctx, ref); err != nil || got.ID != tm.ID {
			t.Errorf("find %q: %q, %v", ref, got.ID, err)
		}
	}
	child.Print("x")
	killed, err := w.client.Kill(ctx, "build")
	if err != nil || killed.Exit == nil || !child.Killed() {
		t.Errorf("kill: %+v, %v", killed, err)
	}
	if again, err := w.client.Kill(ctx, tm.ID); err != nil || !cmp.Equal(again.Exit, killed.Exit) {
		t.Errorf("kill again: %+v, %v", again, err)
	}
	odd, _ := w.spawn("a/b c?d#e%f/../..")
	if got, err := w.client.Find(ctx, odd.Name); err != nil || got.ID != odd.ID {
		t.Errorf("a name with special characters: %q, %v", got.ID, err)
	}
}

func TestDaemonIsAsked(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	ctx := t.Context()
	if s, err := w.client.Status(ctx); err != nil || s.Pid != 7 || !s.Running {
		t.Errorf("status: %+v, %v", s, err)
	}
	if h, err := w.client.Pair(ctx, localapi.PairRequest{Name: "n", URL: "u"}); err != nil || h.URL != "u" {
		t.Errorf("pair: %+v, %v", h, err)
	}
	if _, err := w.client.Unpair(ctx, "a/b"); err != nil {
		t.Errorf("unpair: %v", err)
	}
	w.daemon.err = &localapi.Error{Code: localapi.CodeRefused, Message: "m", Hint: "h"}
	_, err := w.client.Pair(ctx, localapi.PairRequest{Name: "bad"})
	var e *localapi.Error
	if !errors.As(err, &e) || *e != (localapi.Error{Code: localapi.CodeRefused, Message: "m", Hint: "h"}) {
		t.Errorf("refused pair: %+v", err)
	}
	if err := w.client.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	testkit.Eventually(t, patience, "shutdown is told", func() bool {
		w.daemon.mu.Lock()
		defer w.daemon.mu.Unlock()
		return cmp.Equal(w.daemon.asked, []string{"pair n", "unpair a/b", "pair bad", "shutdown"})
	})
}

func TestErrorsHaveCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code localapi.Code
		exit int
	}{
		{term.ErrNotFound, localapi.CodeNoTerminal, 7},
		{&term.AmbiguousError{Ref: "x"}, localapi.CodeAmbiguous, 7},
		{fmt.Errorf("x: %w", &term.DeniedError{}), localapi.CodeDenied, 6},
		{&term.SpecError{Field: "size", Err: io.EOF}, localapi.CodeBadRequest, 2},
		{&term.SpecError{Field: "private", Err: term.ErrPrivate}, localapi.CodeBadRequest, 2},
		{fmt.Errorf("start: %w", &pty.StartError{What: "directory", Err: io.EOF}), localapi.CodeCannotStart, 1},
		{&pty.StartError{What: "program", Err: fmt.Errorf("%w: x", pty.ErrTooLarge)}, localapi.CodeCannotStart, 1},
		{term.ErrExited, localapi.CodeExited, 1},
		{term.ErrEnding, localapi.CodeExited, 1}, // was a bug of the daemon's, to who promotes in that moment
		{term.ErrClosed, localapi.CodeClosing, 3},
		{&http.MaxBytesError{Limit: 9}, localapi.CodeTooLarge, 1},
		{context.DeadlineExceeded, localapi.CodeTimeout, 8},
		{fmt.Errorf("x: %w", &localapi.Error{Code: localapi.CodeUnreachable}), localapi.CodeUnreachable, 5},
		{io.EOF, localapi.CodeInternal, 1},
	} {
		e := local.ErrorFor(c.err)
		if e.Code != c.code || localapi.ExitStatus(e) != c.exit {
			t.Errorf("%v: %s with exit status %d, want %s with %d", c.err, e.Code, localapi.ExitStatus(e), c.code, c.exit)
		}
	}
}

func read(t *testing.T, w *world, ref string, o localclient.ReadOptions) string {
	t.Helper()
	body := must.Get(w.client.Read(t.Context(), ref, o, nil))(t)
	defer body.Close()
	text := must.Get(io.ReadAll(body))(t)
	return string(text)
}

func TestOutput(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("out")
	const printed = "one\ntwo\x1b]633;A\x07\nthr\xff\x1b[6nee\n"
	child.Print(printed)
	child.Print("four")
	testkit.Eventually(t, patience, "all was taken", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Bytes == int64(len(printed+"four"))
	})
	for _, c := range []struct {
		o    localclient.ReadOptions
		want string
	}{
		{localclient.ReadOptions{}, "one\ntwo\nthr\uFFFDee\nfour"},
		{localclient.ReadOptions{View: "text"}, "one\ntwo\nthr\uFFFDee\nfour"},
		{localclient.ReadOptions{View: "screen"}, "one\ntwo\nthr\xff\x1b[6nee\nfour"},
		{localclient.ReadOptions{View: "raw"}, "one\ntwo\x1b]633;A\x07\nthr\xff\x1b[6nee\nfour"},
		{localclient.ReadOptions{Lines: 1}, "four"},
		{localclient.ReadOptions{Lines: 2}, "thr\uFFFDee\nfour"},
		{localclient.ReadOptions{Lines: 4}, "one\ntwo\nthr\uFFFDee\nfour"},
		{localclient.ReadOptions{Lines: 1000}, "one\ntwo\nthr\uFFFDee\nfour"},
	} {
		if got := read(t, w, "out", c.o); got != c.want {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
	for _, q := range []string{"view=colour", "lines=-1", "lines=x", "lines=99999999999999999999", "command=x"} {
		resp := ask(t, w, "GET /v1/terminals/out/output?"+q+" HTTP/1.1\r\nHost: tether\r\n\r\n")
		if resp == nil || codeOf(t, resp) != localapi.CodeBadRequest {
			t.Errorf("%s: %+v, want %s", q, resp, localapi.CodeBadRequest)
		}
	}
	if _, err := w.client.Read(t.Context(), "nothing", localclient.ReadOptions{}, nil); localapi.ExitStatus(err) != localapi.ExitNoTerminal {
		t.Errorf("no terminal: %v", err)
	}
}

func TestFollow(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	_, child := w.spawn("out")
	child.Print("first\n")
	body := must.Get(w.client.Read(t.Context(), "out", localclient.ReadOptions{Follow: true}, nil))(t)
	defer body.Close()
	buf := make([]byte, 64)
	for _, want := range []string{"first\n", "second\n", "third\n"} {
		if n, err := io.ReadFull(body, buf[:len(want)]); err != nil || string(buf[:n]) != want {
			t.Fatalf("read %q, %v; want %q", buf[:n], err, want)
		}
		child.Print(map[string]string{"first\n": "second\n", "second\n": "third\n"}[want])
	}
	child.End(0)
	if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
		t.Errorf("after the exit: %q, %v", rest, err)
	}

	gone, cancel := context.WithCancel(t.Context())
	_, other := w.spawn("other")
	other.Print("x")
	left := must.Get(w.client.Read(gone, "other", localclient.ReadOptions{Follow: true}, nil))(t)
	cancel()
	if _, err := io.ReadAll(left); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader who left: %v", err)
	}
	left.Close()
}

// Whoever follows output and loses the connection goes on where it was, in every view,
// with no byte twice and none missing.
func TestFollowGoesOnAtItsOffset(t *testing.T) {
	for _, o := range []localclient.ReadOptions{{}, {View: "screen"}, {View: "raw"}, {Lines: 1}} {
		w := serve(t, local.Options{}, term.Options{})
		_, child := w.spawn("out")
		o.Follow = true
		got := ""
		for _, part := range []string{"one\x1b]633;A\x07\ntwo", "\nth\xc3\xa9r\xff\x1b[6nee\n", "\x1b[31mfo\xf0\x9f\x98\x80ur", "\x1b[0m\nfive\n"} {
			child.Print(part)
			body := must.Get(w.client.Read(t.Context(), "out", o, nil))(t)
			for !strings.HasSuffix(got, part[len(part)-3:]) { // which no view changes
				m := must.Get(body.Next())(t)
				got += string(m.Data)
				o.From = m.Raw
			}
			body.Close()
		}
		if all := read(t, w, "out", localclient.ReadOptions{View: o.View}); o.Lines == 0 && got != all || !strings.HasSuffix(all, got) {
			t.Errorf("%+v: %q in pieces, %q at once", o, got, all)
		}
	}
}

func TestLongOutputHasLastLines(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 256 << 10})
	tm, child := w.spawn("long")
	var all strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&all, "%d %s\n", i, strings.Repeat("x", i%300))
	}
	text := all.String()
	for rest := text; rest != ""; {
		n := min(len(rest), 4000)
		child.Print(rest[:n])
		rest = rest[n:]
	}
	testkit.Eventually(t, patience, "all was taken", func() bool {
		got, err := w.client.Find(t.Context(), tm.ID)
		return err == nil && got.Bytes == int64(len(text))
	})
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	for _, n := range []int{1, 2, 10, 100, 1000} {
		if got, want := read(t, w, "long", localclient.ReadOptions{Lines: n}), strings.Join(lines[len(lines)-n:], "")+"\n"; got != want {
			t.Errorf("the last %d lines: %d bytes, want %d", n, len(got), len(want))
		}
	}
	for _, o := range []localclient.ReadOptions{{}, {Lines: 1 << 20}} {
		got := read(t, w, "long", o)
		if len(got) < 200<<10 || !strings.HasSuffix(text, got) {
			t.Errorf("%+v: %d bytes that are not the end of what was printed", o, len(got))
		}
	}
}

func TestDrainRefuses(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("x")
	w.server.Drain()
	_, err := w.client.List(t.Context())
	var e *localapi.Error
	if !errors.As(err, &e) || e.Code != localapi.CodeClosing {
		t.Errorf("while it ends: %v, want %s", err, localapi.CodeClosing)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := w.client.WaitGone(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the socket is there: %v", err)
	}
}

// Reading a program that keeps printing ends with the output available at its start: a
// slower client would otherwise never finish.
func TestReadEndsThoughTheProgramGoesOn(t *testing.T) {
	const ahead, most = 4 << 20, 16 << 20 // bytes
	w := serve(t, local.Options{}, term.Options{LogBytes: 32 << 20})
	tm, child := w.spawn("a")
	h := must.Get(w.pool.As(term.User).Find(tm.ID))(t)
	line, printed, read := strings.Repeat("x", 1023)+"\n", 0, 0
	print := func() { // so that there is always more than the buffers hold
		for ; printed < read+ahead; printed += 64 * len(line) {
			child.Print(strings.Repeat(line, 64))
		}
		testkit.Eventually(t, patience, "it was taken", func() bool { return h.Info().Bytes == int64(printed) })
	}
	print()
	body := must.Get(w.client.Read(t.Context(), "a", localclient.ReadOptions{View: "raw"}, nil))(t)
	defer body.Close()
	buf := make([]byte, 64<<10)
	for read < most {
		n, err := body.Read(buf)
		read += n
		if errors.Is(err, io.EOF) && read >= ahead {
			return
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", read, err)
		}
		print()
	}
	t.Errorf("it goes on after %d bytes, when there were %d", read, ahead)
}

// A path with an empty name is answered with an error, not with a redirect to another
// path.
func TestEmptyNamesInPaths(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	for _, path := range []string{"/v1/terminals//kill", "/v1/terminals/../kill", "/v1/terminals/./kill"} {
		conn := w.dial()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: tether\r\nContent-Length: 0\r\n\r\n", path)
		resp := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("POST %s: %s, want 404", path, resp.Status)
		}
	}
	tm, _ := w.spawn("a.b")
	if found, err := w.client.Find(t.Context(), "a.b"); err != nil || found.ID != tm.ID {
		t.Errorf("Find(a.b) = %v, %v", found.ID, err)
	}
}

// Running terminals come before exited ones, the newest first; the order does not depend
// on that of the pool.
func TestListIsNewestFirst(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC) }
	exited := func(minute int) *vocab.Exit { return &vocab.Exit{At: at(minute)} }
	want := []string{"newest", "twin a", "twin b", "exited last", "exited first"}
	list := []localapi.Terminal{
		{ID: "exited first", Started: at(6), Exit: exited(7)}, {ID: "twin b", Started: at(1)}, {ID: "newest", Started: at(3)},
		{ID: "exited last", Started: at(0), Exit: exited(8)}, {ID: "twin a", Started: at(1)},
	}
	for range 2 {
		slices.SortFunc(list, local.NewestFirst)
		var ids []string
		for _, x := range list {
			ids = append(ids, x.ID)
		}
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		slices.Reverse(list)
	}
}

// A request that was admitted just before the server drained is either waited for or
// refused: a WaitGroup alone covers only requests counted before the wait.
func TestDrainWaitsForEveryRequest(t *testing.T) {
	pool := term.NewPool(term.Options{})
	for range 50 {
		s := local.NewServer(local.Options{Access: pool.As})
		var inside atomic.Int64
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				for s.Enter() == nil {
					inside.Add(1)
					runtime.Gosched()
					inside.Add(-1)
					s.Leave()
				}
			})
		}
		s.Drain()
		if n := inside.Load(); n != 0 {
			t.Errorf("Drain has returned, and %d are there", n)
		}
		clients.Wait()
	}
}

// Every body below /v1 says that it is JSON.
func TestBodiesHaveContentTypes(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	for _, c := range []struct {
		kind string
		code localapi.Code
	}{
		{"", localapi.CodeUnsupportedType},
		{"Content-Type: text/plain\r\n", localapi.CodeUnsupportedType},
		{"Content-Type: application/x-www-form-urlencoded\r\n", localapi.CodeUnsupportedType},
		{"Content-Type: application/json; charset=utf-8\r\n", localapi.CodeNoTerminal},
		{"Content-Type: application/json\r\n", localapi.CodeNoTerminal},
	} {
		for _, framing := range []string{"Content-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"} {
			resp := ask(t, w, "POST /v1/terminals/none/kill HTTP/1.1\r\nHost: tether\r\n"+c.kind+framing)
			if resp == nil {
				t.Fatalf("%q: no answer", c.kind)
			}
			if got := codeOf(t, resp); got != c.code {
				t.Errorf("%q %.20q: %s, want %s", c.kind, framing, got, c.code)
			}
		}
	}
	if resp := ask(t, w, "POST /v1/terminals/none/kill HTTP/1.1\r\nHost: tether\r\nContent-Length: 0\r\n\r\n"); resp == nil || codeOf(t, resp) != localapi.CodeNoTerminal {
		t.Errorf("without a body: %v", resp)
	}
}
