package jsonrpc_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

var update = flag.Bool("update", false, "rewrite the transcripts with what happened")

// TestTranscripts plays testdata/*.txtar against a peer. Sections are carried out in
// order; each line of
//
//	in      is a message that the other side sends
//	out     is a message that the peer must have sent since the last "out"
//	call    is "method params", called by the peer
//	result  is the result of a call, in order of return
//	seen    is a notification that the handler got, as "method params"
//	stats   is "invalid N, stray N", the peer's counters
//
// After each section the test waits until every goroutine is idle. The handler echoes the
// params of "echo", fails with "fail", "fail with data" and "fail badly", keeps the
// requests of "hold" and answers them, newest first, on "release".
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text := must.Get(os.ReadFile(file))(t)
			sections := parseTranscript(string(text))
			changed := false
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				defer s.end(t)
				for i := range sections[1:] {
					f := &sections[i+1]
					if got, check := s.play(t, f.name, f.text); check && got != f.text {
						changed = true
						if !*update {
							t.Errorf("%s, section %d, %s (-want +got):\n%s", file, i+1, f.name, cmp.Diff(f.text, got))
						}
						f.text = got
					}
				}
			})
			if changed && *update {
				check.OK(t, os.WriteFile(file, []byte(formatTranscript(sections)), 0o644))
			}
		})
	}
}

// A section is a part of a txtar file; the first one, without a name, is the comment.
// (Two functions of ten lines, so that the test needs no module.)
type section struct{ name, text string }

func parseTranscript(text string) []section {
	sections := []section{{}}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(name, " --\n") {
			sections = append(sections, section{name: strings.TrimSuffix(name, " --\n")})
			continue
		}
		sections[len(sections)-1].text += line
	}
	return sections
}

func formatTranscript(sections []section) string {
	text := sections[0].text
	for _, s := range sections[1:] {
		text += "-- " + s.name + " --\n" + s.text
	}
	return text
}

// A stage is a peer with everything around it recorded. It lives in a bubble: after
// synctest.Wait nothing else touches its fields.
type stage struct {
	peer   *jsonrpc.Peer
	other  jsonrpc.Channel
	ended  chan error
	read   chan struct{}
	out    strings.Builder
	seen   strings.Builder
	result strings.Builder
	held   []*jsonrpc.Request
}

func newStage(t *testing.T) *stage {
	a, b := testkit.Channels()
	s := &stage{other: b, ended: make(chan error, 1), read: make(chan struct{})}
	s.peer = jsonrpc.NewPeer(a, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(s.handle), MaxRequests: 4, MaxMessage: 1000})
	go func() { s.ended <- s.peer.Run(t.Context()) }()
	go func() {
		defer close(s.read)
		for {
			msg, err := b.Recv(context.Background())
			if err != nil {
				return
			}
			fmt.Fprintf(&s.out, "%s\n", msg)
		}
	}()
	return s
}

func (s *stage) end(t *testing.T) {
	s.peer.Close()
	if err := <-s.ended; !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("Run = %v, want %v", err, jsonrpc.ErrClosed)
	}
	<-s.read
}

func (s *stage) handle(_ context.Context, r *jsonrpc.Request) {
	if r.IsNotification() {
		fmt.Fprintf(&s.seen, "%s %s\n", r.Method, r.Params)
		_ = r.Reply("ignored")
		_ = r.ReplyError(errors.New("ignored"))
		if r.Method == "release" {
			for i := len(s.held) - 1; i >= 0; i-- {
				_ = s.held[i].Reply(i)
			}
			s.held = nil
		}
		return
	}
	switch r.Method {
	case "echo":
		var params any
		if err := decode(r, &params); err != nil {
			_ = r.ReplyError(err)
			return
		}
		_ = r.Reply(params)
	case "fail":
		_ = r.ReplyError(fmt.Errorf("while failing: %w", jsonrpc.Errorf(-32008, "no such thing")))
	case "fail with data":
		_ = r.ReplyError(&jsonrpc.Error{Code: -32005, Message: "version", Data: []byte(`{"supportedVersions":["1.0.0"]}`)})
	case "fail badly":
		_ = r.ReplyError(errors.New("goroutine 1 [running]: /home/someone"))
	case "null":
		_ = r.Reply(nil)
	case "huge":
		_ = r.Reply(strings.Repeat("x", 2000))
	case "unencodable":
		_ = r.Reply(func() {})
	case "hold":
		s.held = append(s.held, r)
	default:
		_ = r.ReplyError(jsonrpc.MethodNotFound(r.Method))
	}
}

// play carries out one section. check reports whether the section states an expected
// result; got is the actual one.
func (s *stage) play(t *testing.T, section, text string) (got string, check bool) {
	defer synctest.Wait()
	take := func(b *strings.Builder) (string, bool) {
		defer b.Reset()
		return b.String(), true
	}
	switch section {
	case "in":
		for line := range strings.Lines(text) {
			must.Do(t, s.other.Send(t.Context(), []byte(strings.TrimSuffix(line, "\n"))))
			synctest.Wait() // calls return in the order of their responses
		}
	case "call":
		for line := range strings.Lines(text) {
			method, params, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			go s.call(t.Context(), method, params)
			synctest.Wait() // ids are given in order
		}
	case "out":
		return take(&s.out)
	case "seen":
		return take(&s.seen)
	case "result":
		return take(&s.result)
	default:
		t.Fatalf("unknown section %q", section)
	}
	return "", false
}

func (s *stage) call(ctx context.Context, method, params string) {
	var result any
	var arg any
	if params != "" {
		arg = rawParams(params)
	}
	if err := s.peer.Call(ctx, method, arg, &result); err != nil {
		fmt.Fprintln(&s.result, err)
		return
	}
	fmt.Fprintf(&s.result, "%s: %v\n", method, result)
}
