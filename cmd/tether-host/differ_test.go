package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// differences are the rows of docs/PROTOCOL.md on differences between VS Code's host and
// this one: the subject, there, and here.
func differences(t *testing.T) map[string][2]string {
	t.Helper()
	page := must.Get(os.ReadFile("../../docs/PROTOCOL.md"))(t)
	_, table, _ := strings.Cut(string(page), "| | VS Code's host | tether-host |\n|---|---|---|\n")
	rows := map[string][2]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 {
			break
		}
		rows[strings.TrimSpace(cells[0])] = [2]string{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])}
	}
	return rows
}

// guest is a client of a host that runs shells.
type guest struct {
	*client.Conn
	id string

	mu   sync.Mutex
	seen []ahp.Envelope
}

func visitHost(t *testing.T, e client.Endpoint, id string) *guest {
	t.Helper()
	g := &guest{id: id}
	var err error
	g.Conn, err = client.Connect(t.Context(), e, client.Options{ClientID: id, OnEnvelope: func(v ahp.EnvelopeView) {
		one := ahp.Envelope{Channel: v.Channel, Action: append([]byte(nil), v.Action...)}
		if v.HasOrigin {
			one.Origin = &ahp.Origin{ClientID: v.Origin.ClientID, ClientSeq: v.Origin.ClientSeq}
		}
		if v.Rejected {
			reason := v.RejectionReason
			one.RejectionReason = &reason
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.seen = append(g.seen, one)
	}})
	must.Do(t, err)
	t.Cleanup(g.Close)
	return g
}

// says dispatches an action and returns the result in the table's words.
func (g *guest) says(t *testing.T, uri string, a ahp.Action) string {
	t.Helper()
	seq := must.Get(g.Dispatch(t.Context(), uri, a))(t)
	what := ""
	testkit.Eventually(t, patience, "an answer to "+a.Type(), func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, e := range g.seen {
			if e.Origin == nil || e.Origin.ClientID != g.id || e.Origin.ClientSeq != seq {
				continue
			}
			switch {
			case e.RejectionReason != nil && *e.RejectionReason != "":
				what = "refused with a reason"
			case a.Type() == ahp.ActionTerminalInput:
				what = "accepted"
			default:
				what = "broadcast"
			}
		}
		return what != ""
	})
	return what
}

// exitCode is that of a terminal once it has exited.
func (g *guest) exitCode(t *testing.T, uri string) (code int64) {
	t.Helper()
	testkit.Eventually(t, patience, "the exit", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, e := range g.seen {
			if a, err := ahp.DecodeAction(e.Action); err == nil && e.Channel == uri {
				if x, ok := a.(ahp.TerminalExited); ok && x.ExitCode != nil {
					code = *x.ExitCode
					return true
				}
			}
		}
		return false
	})
	return code
}

// outcomeOf is how a request was answered, as the table has it.
func outcomeOf(err error) string {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Sprint(int64(e.Code))
	}
	if err != nil {
		return err.Error()
	}
	return "null"
}

// missedMuch makes a shell print more than hosts keep for returning clients while other
// is away, and returns the messages that other then gets.
func missedMuch(t *testing.T, e client.Endpoint, owner, other *guest, uri string) string {
	t.Helper()
	r := must.Get(other.Subscribe(t.Context(), uri))(t)
	other.Close()
	must.Get(owner.Dispatch(t.Context(), uri, ahp.TerminalInput{Data: "seq 1 2000000; echo do''ne\r"}))(t)
	testkit.Eventually(t, restartPatience, "all is printed", func() bool {
		owner.mu.Lock()
		defer owner.mu.Unlock()
		newest := "" // pieces of output, or the screen, if the owner has fallen behind
		for _, e := range owner.seen[max(0, len(owner.seen)-10):] {
			if a, err := ahp.DecodeAction(e.Action); err == nil && e.Channel == uri {
				if d, ok := a.(ahp.TerminalData); ok {
					newest += d.Data
				}
			}
		}
		return strings.Contains(newest, "done")
	})
	c := must.Get(client.Connect(t.Context(), e, client.Options{ClientID: other.id, Resume: &client.Resume{Initial: other.Result(),
		LastSeenServerSeq: r.Snapshot.FromSeq, Subscriptions: []string{ahp.RootURI, uri}}}))(t)
	defer c.Close()
	result, _ := c.Resumed()
	switch {
	case result.Type != ahp.ReconnectSnapshot:
		return result.Type
	case slices.ContainsFunc(result.Snapshots, func(s ahp.Snapshot) bool { return s.Resource == uri }):
		return "a snapshot with all of them"
	}
	return "a snapshot without the terminals (0.9.0)"
}

// The differences between the two hosts in docs/PROTOCOL.md are the actual ones.
func TestWhereHostsDiffer(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Setenv("SHELL", "/bin/sh")
	rows := differences(t)
	hosts := map[string]func(t *testing.T) client.Endpoint{
		"tether-host": func(t *testing.T) client.Endpoint {
			return client.Endpoint{URL: start(t, "--token", ownToken).url, Token: ownToken}
		},
		"VS Code": func(t *testing.T) client.Endpoint {
			h := testkit.StartVSCodeHost(t, "../..")
			e := client.Endpoint{URL: h.URL, Token: h.Token}
			testkit.Eventually(t, 5*time.Minute, "VS Code's host answers", func() bool {
				c, err := client.Connect(t.Context(), e, client.Options{ClientID: "looks"})
				if err == nil {
					c.Close()
				}
				return err == nil
			})
			return e
		},
	}
	for name, open := range hosts {
		t.Run(name, func(t *testing.T) {
			e := open(t)
			owner, other := visitHost(t, e, "differ-owner"), visitHost(t, e, "differ-other")
			const uri = "ahp-terminal:/differ"
			create := ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim(owner.id)}
			must.Do(t, owner.CreateTerminal(t.Context(), create))
			for _, g := range []*guest{owner, other} {
				must.Get(g.Subscribe(t.Context(), uri))(t)
			}
			got := map[string]string{
				"`createTerminal` with a URI that exists":          outcomeOf(owner.CreateTerminal(t.Context(), create)),
				"typing into a terminal that another client holds": other.says(t, uri, ahp.TerminalInput{Data: " "}),
				"an action that clients may not dispatch":          other.says(t, uri, ahp.TerminalData{Data: "forged"}),
				"`disposeTerminal` of what is not there":           outcomeOf(owner.DisposeTerminal(t.Context(), "ahp-terminal:/differ-none")),
				"a second `initialize`": outcomeOf(owner.Peer().Call(context.WithoutCancel(t.Context()), ahp.MethodInitialize,
					ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: owner.id}, nil)),
			}
			got["`reconnect` after too many envelopes"] = missedMuch(t, e, owner, other, uri)
			must.Get(owner.Dispatch(t.Context(), uri, ahp.TerminalInput{Data: "kill -9 $$\r"}))(t)
			code := owner.exitCode(t, uri)
			got["a shell that a signal ended"] = fmt.Sprint("exit code ", code)
			if code == 128+9 {
				got["a shell that a signal ended"] = "128 + its number"
			}
			for what, is := range got {
				want, ok := rows[what]
				if i := map[string]int{"VS Code": 0, "tether-host": 1}[name]; !ok || want[i] != is {
					t.Errorf("%s: %s; docs/PROTOCOL.md says %q", what, is, want[i])
				}
			}
		})
	}
}
