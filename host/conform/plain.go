package conform

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/jsonrpc"
)

// plainRules hold for every host. Their terminal is a shell that the host runs.
var plainRules = []rule{
	{"initialize selects an offered protocol version", func(r *run) error {
		if v := r.owner.conn.Version(); !slices.Contains(ahp.Versions(), v) {
			return fmt.Errorf("the host selected %.40q", v)
		}
		return nil
	}},
	{"ping is answered", func(r *run) error { return r.settled() }},
	{"an unknown method is refused with -32601", func(r *run) error {
		ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
		defer cancel()
		return wantCode(r.owner.conn.Peer().Call(ctx, "x-conform/unknown", map[string]string{"channel": ahp.RootURI}, nil), "x-conform/unknown", jsonrpc.CodeMethodNotFound)
	}},
	{"a second initialize is refused", func(r *run) error {
		ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
		defer cancel()
		p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: r.owner.id}
		if r.owner.conn.Peer().Call(ctx, ahp.MethodInitialize, p, nil) == nil {
			return errors.New("the second initialize was accepted")
		}
		return nil
	}},
	{"reconnect by an unknown client is refused", func(r *run) error {
		s, err := r.reopen(r.opts.Endpoint, "conform-"+rand.Text()[:12], client.Resume{Initial: r.owner.conn.Result()})
		if err == nil {
			s.conn.Close()
			return errors.New("reconnect was accepted")
		}
		if !errors.Is(err, client.ErrNotResumed) {
			return fmt.Errorf("the answer is not a protocol error: %w", err)
		}
		return nil
	}},
	{"subscribing to the root returns the catalogue", func(r *run) error { _, err := r.listed(r.owner); return err }},
	{"subscribing to a missing terminal is refused", func(r *run) error {
		if _, err := r.state(r.owner); code(err) == 0 {
			return fmt.Errorf("got %v, want an error", err)
		}
		return nil
	}},
	{"disposing of a missing terminal changes nothing", func(r *run) error {
		ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
		defer cancel()
		_ = r.owner.conn.DisposeTerminal(ctx, r.uri) // hosts differ in whether this is an error
		return r.settled()
	}},
	{"createTerminal starts a terminal and lists it", func(r *run) error {
		err := r.create(ahp.CreateTerminalParams{Channel: r.uri, Claim: ahp.ClientClaim(r.owner.id), Name: "conform"})
		if code(err) == ahp.CodePermissionDenied {
			return skip("the host runs no shells for this token")
		}
		if err != nil {
			return err
		}
		st, err := r.state(r.owner)
		if err != nil {
			return err
		}
		if st.Lifecycle.Exited() || !st.Claim.HeldBy(r.owner.id) || st.ExecutionTarget == ahp.TargetClient {
			return fmt.Errorf("got state %+v, claim %+v, executionTarget %q", st.Lifecycle, st.Claim, st.ExecutionTarget)
		}
		info, err := r.listed(r.owner)
		if err == nil && info == nil {
			err = errors.New("the terminal is not in the catalogue")
		}
		return err
	}},
	{"createTerminal with a URI in use is refused", inShell(func(r *run) error {
		if r.create(ahp.CreateTerminalParams{Channel: r.uri, Claim: ahp.ClientClaim(r.owner.id)}) == nil {
			return errors.New("createTerminal was accepted")
		}
		return nil
	})},
	{"typed commands run, and their output arrives as terminal/data", inShell(func(r *run) error { return r.types("echo con''form", "conform\r") })},
	{"multi-byte characters arrive intact", inShell(func(r *run) error {
		return r.types(`printf 'gr\303\274n \342\202\254 \360\237\231\202\r\n'`, "grün € \U0001F642\r")
	})},
	{"a later subscriber's snapshot contains the output", inShell(func(r *run) error {
		st, err := r.state(r.other)
		if err == nil && !strings.Contains(st.Text(), "conform\r") {
			err = fmt.Errorf("the snapshot has %.100q", st.Text())
		}
		return err
	})},
	{"the state has the last terminal/resized from the claim's holder", inShell(func(r *run) error {
		if err := r.act(ahp.TerminalResized{Cols: 90, Rows: 30}, ahp.TerminalResized{Cols: 101, Rows: 31}); err != nil {
			return err
		}
		st, err := r.state(r.other)
		if err == nil && (st.Cols != 101 || st.Rows != 31) {
			err = fmt.Errorf("the state has %d×%d", st.Cols, st.Rows)
		}
		return err
	})},
	{"a client receives nothing after it unsubscribes", inShell(func(r *run) error {
		return r.unsubscribed(func() error { return r.types("echo un''seen", "unseen\r") })
	})},
	{"reconnect delivers missed output once, then new output", inShell((*run).watcherComesBack)},
	{"terminal/cleared removes the text, also for later subscribers", inShell(func(r *run) error {
		if err := r.act(ahp.TerminalCleared{}); err != nil {
			return err
		}
		st, err := r.state(r.other)
		if err == nil && strings.Contains(st.Text(), "conform\r") {
			err = fmt.Errorf("the state has %.100q", st.Text())
		}
		return err
	})},
	{"terminal/exited has the exit code", inShell(func(r *run) error {
		if _, err := r.owner.conn.Dispatch(r.ctx, r.uri, ahp.TerminalInput{Data: "exit 7\r"}); err != nil {
			return err
		}
		return r.exits(r.owner, 7)
	})},
	{"after the exit, state and catalogue have the exit code", inShell(func(r *run) error { return r.exited(7) })},
	{"disposeTerminal removes a terminal", inShell((*run).dispose)},
}

// inShell makes a check if the host has started a shell, else it skips the rule.
func inShell(check func(*run) error) func(*run) error {
	return func(r *run) error {
		if info, err := r.listed(r.owner); err != nil || info == nil {
			return skip("the host runs no shell")
		}
		return check(r)
	}
}

// types makes the shell run a line and waits until the owner has received the output. The
// line must differ from the output that it prints, so that its echo does not count.
func (r *run) types(line, prints string) error {
	if _, err := r.owner.conn.Dispatch(r.ctx, r.uri, ahp.TerminalInput{Data: line + "\r"}); err != nil {
		return err
	}
	return r.until(r.owner, "output of the shell", func() bool { return strings.Contains(r.owner.textLocked(r.uri), prints) })
}

// watcherComesBack cuts the connection of the other client while the shell prints, and
// reconnects it.
func (r *run) watcherComesBack() error {
	if _, err := r.state(r.other); err != nil {
		return err
	}
	if err := r.settled(); err != nil {
		return err
	}
	before := r.other
	before.conn.Close()
	if err := r.types("echo aw''ay", "away\r"); err != nil {
		return err
	}
	again, err := r.reopen(r.opts.Observer, before.id, client.Resume{Initial: before.conn.Result(), LastSeenServerSeq: before.last, Subscriptions: []string{r.uri}})
	if err != nil {
		return fmt.Errorf("reconnect: %w", err)
	}
	r.other = again
	result, _ := again.conn.Resumed()
	switch {
	case slices.Contains(result.Missing, r.uri):
		return errors.New("the answer lists the terminal as missing")
	case result.Type == ahp.ReconnectSnapshot:
		i := slices.IndexFunc(result.Snapshots, func(s ahp.Snapshot) bool { return s.Resource == r.uri })
		if i < 0 {
			return errors.New("the answer has no snapshot of the terminal")
		}
		var st ahp.TerminalState
		if err := json.Unmarshal(result.Snapshots[i].State, &st); err != nil {
			return err
		}
		if strings.Count(st.Text(), "away\r") != 1 {
			return fmt.Errorf("the snapshot has %.100q", st.Text())
		}
	default:
		if err := r.until(again, "replay of the missed output", func() bool { return strings.Contains(again.textLocked(r.uri), "away\r") }); err != nil {
			return err
		}
	}
	if err := r.types("echo ba''ck", "back\r"); err != nil {
		return err
	}
	if err := r.until(again, "output after the reconnect", func() bool { return strings.Contains(again.textLocked(r.uri), "back\r") }); err != nil {
		return err
	}
	again.mu.Lock()
	defer again.mu.Unlock()
	if n := strings.Count(again.textLocked(r.uri), "away\r"); n > 1 || n == 1 && result.Type == ahp.ReconnectSnapshot {
		return errors.New("some output arrived twice")
	}
	return nil
}

// exits waits until a client has received the exit, and checks its code.
func (r *run) exits(s *session, want int64) error {
	return r.exitsWithin(r.opts.Timeout, s, want)
}

func (r *run) exitsWithin(timeout time.Duration, s *session, want int64) error {
	var got *int64
	err := r.within(timeout, s, "terminal/exited", func() bool {
		for _, e := range s.seen {
			if x, ok := e.action.(ahp.TerminalExited); ok && e.channel == r.uri && !e.rejected {
				got = x.ExitCode
				return true
			}
		}
		return false
	})
	if err == nil && (got == nil || *got != want) {
		err = fmt.Errorf("the exit code is not %d", want)
	}
	return err
}

func (r *run) dispose() error {
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
	defer cancel()
	if err := r.owner.conn.DisposeTerminal(ctx, r.uri); err != nil {
		return err
	}
	info, err := r.listed(r.owner)
	if err == nil && info != nil {
		err = errors.New("the terminal is still in the catalogue")
	}
	return err
}
