package local_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
)

func TestWait(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("web")
	child.Print("starting\r\n")
	got := make(chan localapi.Waited, 1)
	go func() {
		x, err := w.client.Wait(t.Context(), "web", localclient.WaitOptions{Pattern: `ready (\d+)`})
		check.OK(t, err)
		got <- x
	}()
	child.Print("not yet\r\nready 5\r\n")
	if x := <-got; x.Reason != "pattern" || x.Line != "ready 5" || x.ID != tm.ID || x.Exit != nil || x.SchemaVersion != localapi.SchemaVersion {
		t.Errorf("%+v", x)
	}
	x, err := w.client.Wait(t.Context(), "web", localclient.WaitOptions{Pattern: "ready", New: true, Timeout: time.Millisecond})
	if err != nil || x.Reason != "timeout" {
		t.Errorf("only what is new: %+v, %v", x, err)
	}
	x, err = w.client.Wait(t.Context(), "web", localclient.WaitOptions{Idle: time.Millisecond})
	if err != nil || x.Reason != "idle" {
		t.Errorf("silence: %+v, %v", x, err)
	}
	child.Print("half of a line\r")
	for name, o := range map[string]localclient.WaitOptions{"a line that may change": {Pattern: "^half"}, "one of this moment": {Pattern: "^half", Settle: -1}} {
		if x, err = w.client.Wait(t.Context(), "web", o); err != nil || x.Reason != "pattern" || x.Line != "half of a line" {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
	x, err = w.client.Wait(t.Context(), "web", localclient.WaitOptions{Pattern: "^half", Settle: time.Hour, Timeout: time.Millisecond})
	if err != nil || x.Reason != "pattern" {
		t.Errorf("a look at a line that may change: %+v, %v", x, err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	x, err = w.client.Wait(t.Context(), "web", localclient.WaitOptions{URL: srv.URL, Timeout: 5 * time.Second})
	if err != nil || x.Reason != "timeout" || x.Status != 404 || x.Detail != "it answers 404" {
		t.Errorf("a page that is not there: %+v, %v", x, err)
	}
	if x, err = w.client.Wait(t.Context(), "web", localclient.WaitOptions{URL: srv.URL + "/there"}); err != nil || x.Reason != "url" || x.Status != 200 {
		t.Errorf("a page: %+v, %v", x, err)
	}
	for name, o := range map[string]localclient.WaitOptions{
		"a foreign URL":          {URL: "http://example.com/"},
		"a pattern that is none": {Pattern: "("}, "commands of what is no shell": {Command: true}, "a port that is none": {Port: 70000},
		"a pattern without end": {Pattern: string(make([]byte, 4000))},
	} {
		var e *localapi.Error
		if _, err := w.client.Wait(t.Context(), "web", o); !errors.As(err, &e) || e.Code != localapi.CodeBadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	child.End(3)
	x, err = w.client.Wait(t.Context(), "web", localclient.WaitOptions{})
	if err != nil || x.Reason != "exit" || x.Exit == nil || x.Exit.Code != 3 {
		t.Errorf("the exit: %+v, %v", x, err)
	}
}

// A wait ends with the daemon and with its client, and an agent waits only for terminals
// that it sees.
func TestWaitEnds(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("web")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.client.Wait(ctx, "web", localclient.WaitOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up: %v", err)
	}
	var e *localapi.Error
	if _, err := w.client.As("some").Wait(t.Context(), "nobody", localclient.WaitOptions{}); !errors.As(err, &e) || e.Code != localapi.CodeNoTerminal {
		t.Errorf("nobody: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := w.client.Wait(ctx, "web", localclient.WaitOptions{})
		ended <- err
	}()
	w.server.Drain()
	if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the daemon ends: %v", err)
	}
}

func TestPorts(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("web")
	p, err := w.client.Ports(t.Context(), "web")
	var e *localapi.Error
	if errors.As(err, &e) && e.Code == localapi.CodeNotFound {
		t.Skip(err) // another system
	}
	if err != nil || p.Ports == nil || len(p.Ports) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if l, err := w.client.ListPorts(t.Context()); err != nil || len(l.Terminals) != 1 || l.Terminals[0].Listening != nil {
		t.Errorf("%+v, %v", l, err)
	}
}

// Marks that any program can print end a wait for a command, but not one for a verified
// command.
func TestForgedMarksEndNoVerifiedWait(t *testing.T) {
	for verified, want := range map[bool]string{false: "command", true: "exit"} {
		w := serve(t, local.Options{}, term.Options{})
		_, child := w.spawn("web")
		const forged = "\x1b]133;A\a$ \x1b]133;B\a\x1b]133;C\aout\r\n\x1b]133;D;0\a"
		child.Print(forged) // so that the terminal is known to report commands
		testkit.Eventually(t, patience, "a command", func() bool {
			l, err := w.client.Commands(t.Context(), "web")
			return err == nil && len(l.Commands) == 1
		})
		answered := make(chan localapi.Waited, 1)
		go func() {
			got, err := w.client.Wait(t.Context(), "web", localclient.WaitOptions{Command: true, Verified: verified, New: true})
			if err != nil {
				got.Reason = err.Error()
			}
			answered <- got
		}()
		testkit.Eventually(t, patience, "the wait", func() bool { return w.server.BusyConns(term.User) == 1 })
		var got localapi.Waited
		for i := 0; got.Reason == ""; i++ {
			select {
			case got = <-answered:
			default:
				if child.Print(forged); i == 50 && verified {
					child.End(0)
				}
			}
		}
		if got.Reason != want {
			t.Errorf("verified %t: %+v, want %s", verified, got, want)
		}
		child.End(0)
	}
}
