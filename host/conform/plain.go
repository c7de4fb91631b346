package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tether/ahp"
	"tether/jsonrpc"
)

// plainRules hold for every host. The terminal in them is a shell of the host's.
var plainRules = []rule{
	{"initialize answers with a version that was offered", func(r *run) error {
		if v := r.owner.conn.Version(); !slices.Contains(ahp.Versions(), v) {
			return fmt.Errorf("it chose %.40q", v)
		}
		return nil
	}},
	{"ping is answered", func(r *run) error { return r.settled() }},
	{"an unknown method is refused with -32601", func(r *run) error {
		ctx, cancel := context.WithTimeout(r.ctx, r.opts.Patience)
		defer cancel()
		return wantCode(r.owner.conn.Peer().Call(ctx, "x-conform/unknown", map[string]string{"channel": ahp.RootURI}, nil), "x-conform/unknown", jsonrpc.CodeMethodNotFound)
	}},
	{"a second initialize is refused", func(r *run) error {
		ctx, cancel := context.WithTimeout(r.ctx, r.opts.Patience)
		defer cancel()
		p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: r.owner.id}
		if r.owner.conn.Peer().Call(ctx, ahp.MethodInitialize, p, nil) == nil {
			return errors.New("it was accepted")
		}
		return nil
	}},
	{"subscribing to the root gives the catalogue", func(r *run) error { _, err := r.listed(r.owner); return err }},
	{"subscribing to what is not there is refused", func(r *run) error {
		if _, err := r.state(r.owner); code(err) == 0 {
			return fmt.Errorf("the answer is %v, want an error", err)
		}
		return nil
	}},
	{"disposing of what is not there changes nothing", func(r *run) error {
		ctx, cancel := context.WithTimeout(r.ctx, r.opts.Patience)
		defer cancel()
		_ = r.owner.conn.DisposeTerminal(ctx, r.uri) // hosts differ in whether this is an error
		return r.settled()
	}},
	{"createTerminal starts a terminal that is listed and runs", func(r *run) error {
		err := r.create(ahp.CreateTerminalParams{Channel: r.uri, Claim: ahp.ClientClaim(r.owner.id), Name: "conform"})
		if code(err) == ahp.CodePermissionDenied {
			return skip("the host runs no terminals of its own for this token")
		}
		if err != nil {
			return err
		}
		st, err := r.state(r.owner)
		if err != nil {
			return err
		}
		if st.Lifecycle.Exited() || !st.Claim.HeldBy(r.owner.id) {
			return fmt.Errorf("its state is %+v, its claim %+v", st.Lifecycle, st.Claim)
		}
		info, err := r.listed(r.owner)
		if err == nil && info == nil {
			err = errors.New("the catalogue has no such terminal")
		}
		return err
	}},
	{"a URI cannot be used twice", func(r *run) error {
		return r.withShell(func() error {
			if r.create(ahp.CreateTerminalParams{Channel: r.uri, Claim: ahp.ClientClaim(r.owner.id)}) == nil {
				return errors.New("it can")
			}
			return nil
		})
	}},
	{"what is typed runs, and its output comes as terminal/data", func(r *run) error {
		return r.withShell(func() error {
			// In two parts, so that the echo of what is typed is not the answer.
			if _, err := r.owner.conn.Dispatch(r.ctx, r.uri, ahp.TerminalInput{Data: "echo con''form\r"}); err != nil {
				return err
			}
			return r.until(r.owner, "output of the shell", func() bool { return strings.Contains(r.owner.textLocked(r.uri), "conform\r") })
		})
	}},
	{"a later subscriber's snapshot has the output", func(r *run) error {
		return r.withShell(func() error {
			st, err := r.state(r.other)
			if err == nil && !strings.Contains(st.Text(), "conform\r") {
				err = fmt.Errorf("it has %.100q", st.Text())
			}
			return err
		})
	}},
	{"terminal/exited comes with the exit code", func(r *run) error {
		return r.withShell(func() error {
			if _, err := r.owner.conn.Dispatch(r.ctx, r.uri, ahp.TerminalInput{Data: "exit 7\r"}); err != nil {
				return err
			}
			return r.exits(r.owner, 7)
		})
	}},
	{"disposeTerminal takes a terminal away", func(r *run) error { return r.withShell(r.dispose) }},
}

// withShell applies a check if there is a shell.
func (r *run) withShell(check func() error) error {
	if info, err := r.listed(r.owner); err != nil || info == nil {
		return skip("there is no terminal of the host's")
	}
	return check()
}

// exits waits for the exit.
func (r *run) exits(s *session, want int64) error {
	var got *int64
	err := r.until(s, "terminal/exited", func() bool {
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
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Patience)
	defer cancel()
	if err := r.owner.conn.DisposeTerminal(ctx, r.uri); err != nil {
		return err
	}
	info, err := r.listed(r.owner)
	if err == nil && info != nil {
		err = errors.New("it is still listed")
	}
	return err
}
