package uplink_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// A host that could not take a terminal for a moment gets it later, on the same
// connection.
func TestATerminalThatWasNotTakenIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, fail: map[string]*jsonrpc.Error{
			ahp.MethodCreateTerminal: jsonrpc.Errorf(jsonrpc.CodeOverloaded, "too many terminals"),
		}}
		w := fakeWorld(t, f, literal)
		_, child := w.spawn(term.Spec{})
		prints(child, "hello")
		if got := w.link.Status().Terminals[0].Problem; !strings.Contains(got, "too many terminals") {
			t.Errorf("problem = %q", got)
		}
		locked(&f.mu, func() { f.fail = nil })
		pass(2 * time.Minute)
		if len(f.created) != 1 || f.text[f.created[0]] != "hello" || w.link.Status().Terminals[0].Problem != "" {
			t.Errorf("two minutes later the host has %q, status %+v", f.text, w.link.Status())
		}
	})
}

// ack acknowledges the text of the one terminal up to that position.
func (f *fakeHost) ack(t *testing.T, applied int64) {
	t.Helper()
	must.Do(t, f.peer.Notify(t.Context(), ahp.MethodAck, ahp.AckParams{Channel: f.uri(t), Applied: applied}))
	synctest.Wait()
}

// refuse has the host refuse an action of ours.
func (f *fakeHost) refuse(t *testing.T, uri string, a ahp.Action, reason string) {
	t.Helper()
	must.Do(t, f.peer.Notify(t.Context(), ahp.MethodAction, ahp.Envelope{Channel: uri, ServerSeq: 1, RejectionReason: &reason,
		Action: ahp.AppendAction(nil, a), Origin: &ahp.Origin{ClientID: "laptop", ClientSeq: 1}}))
	synctest.Wait()
}

// Final output that the host has refused has not arrived, although the exit behind it was
// sent.
func TestRefusedFinalOutputIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, deaf: 1}
		w := fakeWorld(t, f, literal)
		_, child := w.spawn(term.Spec{})
		w.cut(true)
		child.Print("last words")
		child.End(3)
		w.up() // both are sent at once
		pass(2 * time.Minute)
		uri := f.uri(t)
		if got, code := f.text[uri], f.exited[uri]; got != "last words" || code == nil || *code != 3 {
			t.Errorf("the host has %q, exit %v; want the last words and 3", got, code)
		}
	})
}

// A host that takes output but no titles is served nevertheless.
func TestARefusedTitleDoesNotStopTheOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		_, child := w.spawn(term.Spec{})
		f.refuse(t, f.uri(t), ahp.TerminalTitleChanged{Title: "x"}, "unknown action")
		prints(child, "more")
		if got := f.text[f.uri(t)]; got != "more" {
			t.Errorf("text %q, want the output", got)
		}
	})
}

// A host's text is shown to the person, on a terminal.
func TestAReasonIsSafeToShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		w.spawn(term.Spec{})
		f.refuse(t, f.uri(t), ahp.TerminalOutput{}, "\x1b]0;evil\a\u009b2J"+strings.Repeat("é", 200))
		got := w.link.Status().Terminals[0].Problem
		if want := "the host refused terminal/output: ]0;evil2J" + strings.Repeat("é", 95) + "…"; got != want {
			t.Errorf("problem = %q, want %q", got, want)
		}
	})
}

// Acknowledgements of text that was never sent, or of less than before, are ignored: the
// window stays closed.
func TestNonsenseAcknowledgementsOpenNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: ahp.NewClientTerminals(30000).Meta()}
		w := fakeWorld(t, f, nil)
		_, child := w.spawn(term.Spec{})
		f.ack(t, 0)
		prints(child, "hello")
		f.ack(t, 5)
		for _, n := range []int64{1 << 60, 6, 3} {
			f.ack(t, n)
			if got := w.link.Status().Terminals[0].Unacked; got != 0 {
				t.Errorf("after an acknowledgement of %d bytes, %d are on their way, want 0", n, got)
			}
		}
		for range 300 {
			child.Print(strings.Repeat("y", 1022) + "\r\n")
		}
		synctest.Wait()
		if got := len(f.text[f.uri(t)]); got > 64<<10+5 {
			t.Errorf("%d bytes were sent without an acknowledgement", got)
		}
	})
}

// Long directories become longer as URIs, and lines of binary longer as text.
func TestNothingOfTheSessionIsTooLongForTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		_, child := w.spawn(term.Spec{Nonce: "n0"})
		deep := strings.Repeat("/目录", 500)
		child.Print("\x1b]633;P;Cwd=" + deep + ";n0\a")
		child.Print("\x1b]633;E;cat " + strings.Repeat("\xff", 30<<10) + ";n0\a\x1b]633;C;n0\a")
		prints(child, "out")
		if st := w.link.Status().Terminals[0]; st.Problem != "" {
			t.Errorf("problem = %q", st.Problem)
		}
		if got := text(w.only()); got != "out" {
			t.Errorf("text = %q", got)
		}
		w.restartHost(host.Options{})
		w.online()
		synctest.Wait()
		if st := w.link.Status().Terminals[0]; st.Problem != "" {
			t.Errorf("announced in a deep directory: problem = %q", st.Problem)
		}
	})
}

// An exited terminal stays in sight until it is disposed of, also when the link has been
// down since.
func TestAnExitedTerminalOutlivesTheLink(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, host.Options{Grace: 10 * time.Second}, nil)
			_, child := w.spawn(term.Spec{})
			child.Print("last words")
			child.End(3)
			synctest.Wait()
			if forgets {
				w.restartHost(host.Options{})
			} else {
				w.cut(false)
			}
			w.online()
			time.Sleep(time.Minute)
			states := w.observe()
			if len(states) != 1 {
				t.Fatalf("forgets=%v: the host has %d terminals, want the exited one", forgets, len(states))
			}
			for _, s := range states {
				if text(s) != "last words" || !s.Lifecycle.Exited() || *s.Lifecycle.ExitCode != 3 {
					t.Errorf("forgets=%v: text %q, %+v", forgets, text(s), s.Lifecycle)
				}
			}
			if p := w.link.Status().Terminals; len(p) > 0 && p[0].Problem != "" {
				t.Errorf("problem %q", p[0].Problem)
			}
		})
	}
}

// A host that answers reconnect with nonsense, or with more than the link takes, is met
// with initialize.
func TestABrokenReconnectStartsAgain(t *testing.T) {
	for name, answer := range map[string]any{
		"nonsense": "nonsense",
		"too much": ahp.ReconnectResult{Type: ahp.ReconnectReplay, Missing: make([]string, client.LenderMaxValues+1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeHost{target: ahp.TargetClient, odd: map[string]any{ahp.MethodReconnect: answer}}
				w := fakeWorld(t, f, literal)
				_, child := w.spawn(term.Spec{})
				prints(child, "hello")
				w.cut(false)
				time.Sleep(time.Minute)
				if s := w.link.Status(); s.State != uplink.StateOnline {
					t.Errorf("after a minute the link is %s: %v", s.State, s.Err)
				}
			})
		})
	}
}

// A reader that fell behind into the first byte of a command must not have it begin twice
// at the host.
func TestACommandBeginsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.online()
		w.cut(true)
		_, child := w.spawn(term.Spec{Nonce: "n0"})
		child.Print("\x1b]633;E;make;n0\a\x1b]633;C;n0\a")
		for i := range 255 { // with the three marks before: one too many for the log
			child.Print(fmt.Sprintf("\x1b]633;P;Cwd=/d%d;n0\a", i))
		}
		child.Print("built\r\n")
		w.mend()
		w.online()
		synctest.Wait()
		s := w.only()
		n := 0
		for _, p := range s.Content {
			if p.Type == ahp.PartCommand {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d commands at the host, want 1: %+v", n, fmt.Sprint(s.Content))
		}
	})
}

// If a host claims to have more than was ever printed, or the URI belongs to another
// client, the output must not be lost: it goes under another URI.
func TestAHostWithTooMuchTextGetsEverythingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: ahp.NewClientTerminals(30000).Meta()}
		w := fakeWorld(t, f, nil)
		_, child := w.spawn(term.Spec{})
		child.Print("hello")
		first := f.uri(t)
		f.ack(t, 1000)
		for range 100 {
			pass(time.Second)
			if f.uri(t) != first {
				break
			}
		}
		if f.uri(t) == first || !slices.Contains(f.disposed, first) {
			t.Fatalf("created %v, disposed of %v; want a new URI instead of the first", f.created, f.disposed)
		}
		f.ack(t, 0)
		if got := f.text[f.uri(t)]; got != "hello" {
			t.Errorf("text = %q, want all of it", got)
		}
	})
}

func TestAURIThatIsTakenIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: ahp.NewClientTerminals(30000).Meta()}
		w := fakeWorld(t, f, nil)
		w.spawn(term.Spec{})
		first := f.uri(t)
		f.peer.Notify(t.Context(), ahp.MethodAck, ahp.AckParams{Channel: first})
		synctest.Wait()
		w.cut(false) // the host says that it exists when it is announced again
		for range 100 {
			pass(time.Second)
			if f.uri(t) != first {
				return
			}
		}
		t.Errorf("created %v, want another URI", f.created)
	})
}

// A host that admits the machine, but not to lend, is not absent: status names the
// remedy, nothing is created.
func TestAHostThatLetsUsOnlyObserve(t *testing.T) {
	no := false
	marker := ahp.NewClientTerminals(30000)
	marker.MayLend = &no
	taken := map[string]*jsonrpc.Error{ahp.MethodInitialize: jsonrpc.Errorf(ahp.CodePermissionDenied, "this machine is registered at the host under another token; unpair, then pair again")}
	for name, f := range map[string]*fakeHost{
		"lets this token only observe":     {target: ahp.TargetClient, marker: marker.Meta()},
		"registered at the host under ano": {target: ahp.TargetClient, marker: ahp.NewClientTerminals(30000).Meta(), fail: taken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := fakeWorld(t, f, nil)
				w.spawn(term.Spec{})
				synctest.Wait()
				s := w.link.Status()
				if s.State != uplink.StateRefused || s.Err == nil || !strings.Contains(s.Err.Error(), name) {
					t.Errorf("the link is %+v, want it refused", s)
				}
				if len(f.created) > 0 || s.Terminals[0].There {
					t.Errorf("created %q; %+v", f.created, s.Terminals)
				}
			})
		})
	}
}
