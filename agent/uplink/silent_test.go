package uplink_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/jsonrpc"
)

// A host that answers heartbeats has not lost the connection, but it may have lost an
// acknowledgement. The terminal must not wait for it for ever, and the person must be
// told.
func TestAHostThatStopsAcknowledgingIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: ahp.NewClientTerminals(30000).Meta(), again: true}
		w := fakeWorld(t, f, nil)
		_, child := w.spawn(term.Spec{})
		ack := func() {
			f.mu.Lock()
			n := int64(len(f.text[f.created[0]]))
			f.mu.Unlock()
			f.peer.Notify(t.Context(), ahp.MethodAck, ahp.AckParams{Channel: f.uri(t), Applied: n})
			synctest.Wait()
		}
		ack()
		line := strings.Repeat("y", 1022) + "\r\n"
		for range 50 {
			child.Print(line)
		}
		time.Sleep(20 * time.Second)
		if p := w.link.Status().Terminals[0].Problem; p != "" {
			t.Errorf("after 20 s without an acknowledgement: problem %q", p)
		}
		ack()
		time.Sleep(20 * time.Second) // text is on its way again, but this acknowledgement was in time
		for range 50 {
			child.Print(line)
		}
		ack()
		for range 50 {
			child.Print(line)
		}
		time.Sleep(29 * time.Second)
		if p := w.link.Status().Terminals[0].Problem; p != "" {
			t.Errorf("29 s after the last acknowledgement: problem %q", p)
		}
		s := w.link.Status()
		for end := time.Now().Add(2 * time.Second); s.Terminals[0].Problem == "" && time.Now().Before(end); s = w.link.Status() {
			time.Sleep(100 * time.Microsecond) // the next attempt, which takes the problem away, may come a millisecond later
		}
		if p := s.Terminals[0].Problem; s.State != uplink.StateOnline || !strings.Contains(p, "acknowledges no output") {
			t.Errorf("31 s after the last acknowledgement: %s, problem %q", s.State, p)
		}
		for range 60 { // its answers when the terminal is announced again
			time.Sleep(time.Second)
			ack()
		}
		if got := len(f.text[f.uri(t)]); got != 150*len(line) || len(f.created) != 1 || w.link.Status().Terminals[0].Problem != "" {
			t.Errorf("then %d bytes in %d terminals, %+v; want all in one", got, len(f.created), w.link.Status().Terminals)
		}
	})
}

// slowKill is a child whose processes take long to end.
type slowKill struct{ *testkit.Child }

func (c slowKill) Kill(ctx context.Context, grace time.Duration) error {
	select {
	case <-time.After(20 * time.Second):
	case <-ctx.Done():
	}
	return c.Child.Kill(ctx, grace)
}

func TestASlowDisposalDoesNotDelayTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.wrap = func(c *testkit.Child) term.PTY { return slowKill{c} }
		disposed, _ := w.spawn(term.Spec{})
		w.dispose()
		w.wrap = nil
		_, child := w.spawn(term.Spec{})
		w.cut(false)
		child.Print("still here")
		pass(2 * time.Second) // the first pause is up to one
		if s := w.link.Status(); s.State != uplink.StateOnline || disposed.Info().Exit != nil {
			t.Errorf("two seconds after the cut the link is %+v; the slow terminal has exited: %v", s, disposed.Info().Exit)
		}
		if got := text(w.only()); got != "still here" {
			t.Errorf("text %q", got)
		}
		time.Sleep(20 * time.Second)
		if disposed.Info().Exit == nil {
			t.Error("the disposal was not carried out")
		}
	})
}

// Why a link is down is shown to the person, on a terminal.
func TestAnErrorOfTheHostIsSafeToShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evil := "\x1b]0;evil\a\u009b2J" + strings.Repeat("é", 5000)
		f := &fakeHost{fail: map[string]*jsonrpc.Error{ahp.MethodInitialize: jsonrpc.Errorf(jsonrpc.CodeOverloaded, "%s", evil)}}
		w := fakeWorld(t, f, nil)
		time.Sleep(time.Minute)
		err := w.link.Status().Err
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\a\u009b") || len(err.Error()) > 500 || !strings.Contains(err.Error(), "evil") {
			t.Errorf("the status shows %.80q, %d bytes", err, len(err.Error()))
		}
	})
}

// A host's text makes no line of the log long: its kept part is bounded.
func TestTheLogIsNotTheHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("1.0.0", 100_000)
		var log bytes.Buffer
		logger := zerolog.New(zerolog.SyncWriter(&log))
		versions, _ := json.Marshal(ahp.VersionErrorData{SupportedVersions: []string{long}})
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, func(o *uplink.Options) { o.AssumeClientTerminals, o.Logger = true, &logger })
		w.spawn(term.Spec{})
		f.refuse(t, f.uri(t), ahp.UnknownAction{Kind: "x" + long, Raw: []byte(`{"type":"x` + long + `"}`)}, "no")
		f.mu.Lock()
		f.fail = map[string]*jsonrpc.Error{ahp.MethodReconnect: jsonrpc.Errorf(ahp.CodeNotFound, "who are you"),
			ahp.MethodInitialize: {Code: ahp.CodeUnsupportedProtocolVersion, Message: "no", Data: versions}}
		f.mu.Unlock()
		w.cut(false)
		time.Sleep(10 * time.Minute)
		w.endLink()
		lines := strings.Split(log.String(), "\n")
		for _, line := range lines {
			if len(line) > 2<<10 {
				t.Errorf("a line of %d bytes: %.100s", len(line), line)
			}
		}
		for _, want := range []string{"refused by the host", "no common protocol version"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log says nothing of %q", want)
			}
		}
	})
}

func TestCommandDetectionIsSentAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		_, child := w.spawn(term.Spec{Nonce: "n0"})
		synctest.Wait()
		w.cut(true)
		child.Print("\x1b]633;A;n0\a$ ")
		for range 100 { // into a log of 64 KiB
			child.Print(strings.Repeat("y", 1022) + "\r\n")
		}
		w.mend()
		w.online()
		synctest.Wait()
		if s := w.only(); !s.SupportsCommandDetection || w.link.Status().Terminals[0].Lost == 0 {
			t.Errorf("detection %v after %+v; want it told after a loss", s.SupportsCommandDetection, w.link.Status().Terminals)
		}
	})
}
