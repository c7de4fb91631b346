package conform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/ahp"
	"tether/jsonrpc"
)

// clientRules hold for hosts that show the marker. Their terminal is client-executed:
// this program takes the place of its pty.
var clientRules = []rule{
	{"a claim for another client is refused with -32602", func(r *run) error {
		p := r.terminal(r.forAll())
		p.Claim = ahp.ClientClaim(r.other.id)
		return wantCode(r.create(p), ahp.MethodCreateTerminal, jsonrpc.CodeInvalidParams)
	}},
	{"a session claim is refused with -32602", func(r *run) error {
		p := r.terminal(r.forAll())
		p.Claim = ahp.Claim{Kind: ahp.ClaimSession, Session: "ahp-session:/conform"}
		return wantCode(r.create(p), ahp.MethodCreateTerminal, jsonrpc.CodeInvalidParams)
	}},
	{"createTerminal starts no process, and the snapshot has executionTarget client", func(r *run) error {
		if _, err := r.listed(r.other); err != nil { // subscribes the other client to changes of the catalogue
			return err
		}
		if err := r.create(r.terminal(r.forAll())); err != nil {
			return err
		}
		st, err := r.state(r.owner)
		if err == nil && (st.ExecutionTarget != ahp.TargetClient || !st.Claim.HeldBy(r.owner.id)) {
			err = fmt.Errorf("got executionTarget %q, claim %+v", st.ExecutionTarget, st.Claim)
		}
		return err
	}},
	{"root/terminalsChanged reports a new terminal", func(r *run) error {
		return r.until(r.other, "root/terminalsChanged with the terminal in it", func() bool {
			return r.other.toldLocked(ahp.RootURI, func(a ahp.Action) bool { return lists(a, r.uri) })
		})
	}},
	{"the catalogue has executionTarget client", func(r *run) error {
		info, err := r.listed(r.other)
		if err == nil && (info == nil || info.ExecutionTarget != ahp.TargetClient) {
			err = fmt.Errorf("the catalogue has %+v", info)
		}
		return err
	}},
	{"another client's createTerminal with a URI in use is refused with -32010", func(r *run) error {
		p := r.terminal(r.forAll())
		p.Claim = ahp.ClientClaim(r.other.id)
		return wantCode(r.other.conn.CreateTerminal(r.ctx, p), ahp.MethodCreateTerminal, ahp.CodeAlreadyExists, ahp.CodePermissionDenied)
	}},
	{"terminal/output reaches the other subscribers as terminal/data", func(r *run) error {
		if _, err := r.state(r.other); err != nil {
			return err
		}
		if err := r.print("first ä\U0001F600\r\n"); err != nil {
			return err
		}
		return r.until(r.other, "terminal/data", func() bool { return r.other.textLocked(r.uri) == "first ä\U0001F600\r\n" })
	}},
	{"the owner does not receive its own output as new", func(r *run) error {
		if err := r.settled(); err != nil {
			return err
		}
		r.owner.mu.Lock()
		defer r.owner.mu.Unlock()
		for _, e := range r.owner.seen {
			if e.channel == r.uri && e.text != "" && e.origin != r.owner.id {
				return fmt.Errorf("the owner received %.60q without its origin", e.text)
			}
		}
		return nil
	}},
	{"a later subscriber's snapshot contains the output", func(r *run) error {
		st, err := r.state(r.other)
		if err == nil && st.Text() != "first ä\U0001F600\r\n" {
			err = fmt.Errorf("the snapshot has %.100q", st.Text())
		}
		return err
	}},
	{"output from other clients is refused with a reason", func(r *run) error {
		return r.refused(r.other, "another client", ahp.TerminalOutput{Data: "forged"})
	}},
	{"exit, size, title, directory and clearing from other clients are refused", func(r *run) error {
		zero := int64(0)
		return r.refused(r.other, "another client", ahp.TerminalExited{ExitCode: &zero}, ahp.TerminalResized{Cols: 10, Rows: 10},
			ahp.TerminalTitleChanged{Title: "forged"}, ahp.TerminalCwdChanged{Cwd: "file:///forged"}, ahp.TerminalCleared{})
	}},
	{"input and claims from other clients are refused (observation only)", func(r *run) error {
		return r.refused(r.other, "another client", ahp.TerminalInput{Data: "x"}, ahp.TerminalClaimed{Claim: ahp.ClientClaim(r.other.id)})
	}},
	{"input and claims from the owner are refused", func(r *run) error {
		return r.refused(r.owner, "the owner", ahp.TerminalInput{Data: "x"}, ahp.TerminalClaimed{Claim: ahp.ClientClaim(r.other.id)})
	}},
	{"refused actions have no effect", func(r *run) error {
		st, err := r.state(r.other)
		if err == nil && (st.Text() != "first ä\U0001F600\r\n" || st.Lifecycle.Exited() || st.Cols != 80 || st.Title != "conform" || !st.Claim.HeldBy(r.owner.id)) {
			err = fmt.Errorf("the state is %+v", st)
		}
		r.other.mu.Lock()
		defer r.other.mu.Unlock()
		if text := r.other.textLocked(r.uri); err == nil && text != "first ä\U0001F600\r\n" {
			err = fmt.Errorf("other clients received %.100q", text)
		}
		return err
	}},
	{"the owner's size, title and directory reach other subscribers", func(r *run) error {
		all := []ahp.Action{ahp.TerminalResized{Cols: 100, Rows: 30}, ahp.TerminalTitleChanged{Title: "changed"}, ahp.TerminalCwdChanged{Cwd: "file:///changed"}}
		if err := r.act(all...); err != nil {
			return err
		}
		for _, want := range all {
			if err := r.hears(r.other, want.Type()+" for the others", func(a ahp.Action) bool { return a == want }); err != nil {
				return err
			}
		}
		return nil
	}},
	{"the owner's size, title and directory are in the state", func(r *run) error {
		st, err := r.state(r.other)
		if err == nil && (st.Cols != 100 || st.Rows != 30 || st.Title != "changed" || st.Cwd != "file:///changed") {
			err = fmt.Errorf("the state is %+v", st)
		}
		return err
	}},
	{"states: the catalogue has the owner's last report of input and readiness", (*run).states},
	{"states: reports from other clients have no effect", (*run).strangeStates},
	{"one terminal/output with maxDataBytes of text is accepted", (*run).longest},
	{"clearing by the owner removes the text, and offsets continue", (*run).clears},
	{"a client receives nothing after it unsubscribes", (*run).unsubscribes},
	{"the owner's commands are in the state, with output and exit code", (*run).commands},
	{"OSC 133 and 633 in terminal/output never reach observers, not even in two parts", (*run).marks},
	{"offsets: repeated text is dropped, and positions are acknowledged", (*run).overlap},
	{"offsets: missing text is shown as missing", (*run).gap},
	{"a terminal survives the loss of its owner's connection for graceMs", (*run).comesBack},
	{"terminal/exited from the owner follows its output and has the exit code", func(r *run) error {
		seven := int64(7)
		if err := r.print("last\r\n"); err != nil {
			return err
		}
		if err := r.act(ahp.TerminalExited{ExitCode: &seven}); err != nil {
			return err
		}
		if err := r.exits(r.other, 7); err != nil {
			return err
		}
		r.other.mu.Lock()
		defer r.other.mu.Unlock()
		if !strings.HasSuffix(r.other.textLocked(r.uri), "last\r\n") {
			return errors.New("the last output is missing")
		}
		return nil
	}},
	{"after the exit, state and catalogue have the exit code", func(r *run) error { return r.exited(7) }},
	{"output after the exit is refused", func(r *run) error {
		return r.refused(r.owner, "the owner", ahp.TerminalOutput{Data: "after"})
	}},
	{"disposeTerminal removes the terminal", (*run).dispose},
	{"root/terminalsChanged reports a removed terminal", func(r *run) error {
		return r.until(r.other, "root/terminalsChanged without the terminal", func() bool {
			gone := false
			r.other.toldLocked(ahp.RootURI, func(a ahp.Action) bool {
				_, is := a.(ahp.RootTerminalsChanged)
				gone = gone && !is || is && !lists(a, r.uri)
				return false // the last one counts
			})
			return gone
		})
	}},
	{"terminal/exited informs the owner when another client disposes of a terminal", (*run).disposedByOthers},
	{"a terminal whose owner has disconnected exits with -1 and is removed", (*run).departs},
}

// lists reports whether a is a new catalogue that has the terminal, as a client-executed
// one.
func lists(a ahp.Action, uri string) bool {
	changed, ok := a.(ahp.RootTerminalsChanged)
	return ok && slices.ContainsFunc(changed.Terminals, func(t ahp.TerminalInfo) bool {
		return t.Resource == uri && t.ExecutionTarget == ahp.TargetClient
	})
}

// exited returns an error unless a new snapshot and the catalogue show the terminal
// exited with that code.
func (r *run) exited(code int64) error {
	st, err := r.state(r.other)
	if err != nil {
		return err
	}
	info, err := r.listed(r.other)
	if err == nil && (info == nil || !exitedWith(st.Lifecycle, code) || !exitedWith(info.Lifecycle, code)) {
		err = fmt.Errorf("the state has %+v, the catalogue %+v", st.Lifecycle, info)
	}
	return err
}

func exitedWith(l ahp.Lifecycle, code int64) bool {
	return l.Exited() && l.ExitCode != nil && *l.ExitCode == code
}

func (r *run) terminal(a ahp.Audience) ahp.CreateTerminalParams {
	cols, rows := int64(80), int64(24)
	p := ahp.CreateTerminalParams{Channel: r.uri, Claim: ahp.ClientClaim(r.owner.id), Name: "conform", Cwd: "file:///conform", Cols: &cols, Rows: &rows,
		ExecutionTarget: ahp.TargetClient}
	if r.marker.KeepsAudiences() {
		p.Meta = ahp.AddAudience(nil, a)
	}
	return p
}

// forAll returns an audience of everybody, so that the other client sees the terminal.
func (r *run) forAll() ahp.Audience { return ahp.Audience{Grants: []ahp.Grant{{To: ahp.ToEveryone}}} }

// act dispatches actions as the owner, and returns when the host has applied them.
func (r *run) act(all ...ahp.Action) error {
	for _, a := range all {
		if _, err := r.owner.conn.Dispatch(r.ctx, r.uri, a); err != nil {
			return err
		}
	}
	return r.settled()
}

// print dispatches output as the owner, with its offset if the host reads offsets.
func (r *run) print(text string) error {
	a := ahp.TerminalOutput{Data: text}
	if at := r.text; r.marker.Resume {
		a.Offset = &at
	}
	r.text += int64(len(text))
	return r.act(a)
}

// says sends a state of input and readiness as a client, and returns what the catalogue
// then has.
func (r *run) says(s *session, input, ready string) (ahp.TerminalMeta, error) {
	if !r.marker.States {
		return ahp.TerminalMeta{}, skip("the marker has no states")
	}
	p := ahp.NewState(r.uri, input, time.Now())
	if ready != "" {
		p.SetReady(ready, time.Now(), "conform")
	}
	if err := s.conn.Peer().Notify(r.ctx, ahp.MethodState, p); err != nil {
		return ahp.TerminalMeta{}, err
	}
	if err := r.settled(); err != nil {
		return ahp.TerminalMeta{}, err
	}
	info, err := r.listed(r.other)
	if err == nil && info == nil {
		err = errors.New("the terminal is not in the catalogue any more")
	}
	if err != nil {
		return ahp.TerminalMeta{}, err
	}
	return info.Meta, nil
}

func (r *run) states() error {
	for _, want := range []struct {
		input, ready string
		awaits       ahp.Awaiting
	}{
		{ahp.InputAwaits, ahp.ReadyStarting, ahp.AwaitsInput}, {ahp.InputSecret, ahp.ReadyYes, ahp.AwaitsSecret}, {"of-another-time", "", ahp.AwaitsNothing},
	} {
		got, err := r.says(r.owner, want.input, want.ready)
		if err == nil && (got.Awaits != want.awaits || got.Ready.String() != want.ready) {
			err = fmt.Errorf("after input %q and ready %q the catalogue has %q and %q", want.input, want.ready, got.Awaits, got.Ready)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) strangeStates() error {
	got, err := r.says(r.other, ahp.InputSecret, ahp.ReadyYes)
	if err == nil && (got.Awaits != ahp.AwaitsNothing || got.Ready.String() != "") {
		err = fmt.Errorf("the catalogue has the report of another client: %q and %q", got.Awaits, got.Ready)
	}
	return err
}

func (r *run) commands() error {
	if !r.marker.CommandActions {
		return skip("the marker has commandActions: false")
	}
	three, ms := int64(3), 12.0
	if err := r.act(ahp.TerminalCommandDetectionAvailable{}, ahp.TerminalCommandExecuted{CommandID: "c1", CommandLine: "make", Timestamp: 1}); err != nil {
		return err
	}
	if err := r.print("made\r\n"); err != nil {
		return err
	}
	if err := r.act(ahp.TerminalCommandFinished{CommandID: "c1", ExitCode: &three, DurationMs: &ms}); err != nil {
		return err
	}
	if err := r.hears(r.other, "terminal/commandFinished for the others", func(a ahp.Action) bool {
		done, ok := a.(ahp.TerminalCommandFinished)
		return ok && done.CommandID == "c1"
	}); err != nil {
		return err
	}
	st, err := r.state(r.other)
	if err != nil {
		return err
	}
	for _, p := range st.Content {
		if p.CommandID == "c1" && p.CommandLine == "make" && p.Output == "made\r\n" && p.IsComplete && p.ExitCode != nil && *p.ExitCode == 3 {
			return nil
		}
	}
	return fmt.Errorf("the content is %+v", st.Content)
}

// marks prints marks that owners must remove, one whole and one in two parts. The host
// must remove them, too.
func (r *run) marks() error {
	for _, text := range []string{"\x1b]133;A\a$ \x1b]6", "33;C\aran\r\n"} {
		if err := r.print(text); err != nil {
			return err
		}
	}
	st, err := r.state(r.other)
	if err != nil {
		return err
	}
	for _, mark := range []string{"\x1b]133", "\x1b]6", "33;C"} {
		if strings.Contains(st.Text(), mark) {
			return fmt.Errorf("the text has %q", mark)
		}
	}
	if !strings.Contains(st.Text(), "$ ") || !strings.HasSuffix(st.Text(), "ran\r\n") {
		return fmt.Errorf("the text is %.60q without the text around the marks", st.Text())
	}
	return nil
}

func (r *run) overlap() error {
	if !r.marker.Resume {
		return skip("the marker has resume: false")
	}
	if err := r.print("0123456789"); err != nil {
		return err
	}
	back := r.text - 5
	if err := r.act(ahp.TerminalOutput{Data: "56789abc", Offset: &back}); err != nil {
		return err
	}
	r.text += 3
	st, err := r.state(r.other)
	if err == nil && !strings.HasSuffix(st.Text(), "0123456789abc") {
		err = fmt.Errorf("the text ends with %.40q", st.Text()[max(0, len(st.Text())-40):])
	}
	if err != nil {
		return err
	}
	return r.until(r.owner, "acknowledgement of "+fmt.Sprint(r.text), func() bool { return r.owner.acked[r.uri] == r.text })
}

func (r *run) gap() error {
	if !r.marker.Resume {
		return skip("the marker has resume: false")
	}
	before, err := r.state(r.other)
	if err != nil {
		return err
	}
	r.text += 1000
	if err := r.print("after the gap"); err != nil {
		return err
	}
	st, err := r.state(r.other)
	if err == nil && (!strings.HasSuffix(st.Text(), "after the gap") || st.Text() == before.Text()+"after the gap" || !strings.Contains(st.Text(), "1000")) {
		err = fmt.Errorf("%.80q does not say that 1000 bytes are missing", strings.TrimPrefix(st.Text(), before.Text()))
	}
	return err
}

// comesBack cuts the owner's connection, connects again and announces the terminal again.
func (r *run) comesBack() error {
	if r.marker.GraceMs <= 0 {
		return skip("the marker has no graceMs")
	}
	r.owner.conn.Close()
	again, err := r.open(r.opts.Endpoint, r.owner.id, ahp.NewClientMeta())
	if err != nil {
		return fmt.Errorf("reconnect as the same client: %w", err)
	}
	r.owner = again
	if err := r.create(r.terminal(r.forAll())); err != nil {
		return fmt.Errorf("announce the terminal again: %w", err)
	}
	st, err := r.state(r.owner)
	switch {
	case err != nil:
		return err
	case st.Lifecycle.Exited():
		return errors.New("the terminal has exited")
	case r.marker.Resume:
		return r.until(r.owner, "acknowledgement after the announcement", func() bool { return r.owner.acked[r.uri] == r.text })
	}
	return nil
}
