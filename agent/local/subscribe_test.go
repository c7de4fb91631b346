package local_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/events"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// happened is a client's events, as one text.
func happened(t *testing.T, c *localclient.Client, r localapi.EventsRequest) string {
	t.Helper()
	h := must.Get(c.Events(t.Context(), r, nil))(t)
	defer h.Close()
	var all strings.Builder
	for {
		x, err := h.Next()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		must.Do(t, err)
		if x.Event != nil {
			line, _ := json.Marshal(x.Event)
			all.Write(append(line, '\n'))
		}
	}
}

// Events have no secrets, for agents in any case, and for the person unless raw is set.
func TestEventsTellNoSecrets(t *testing.T) {
	w := hushed(t)
	_, child := w.secretly(w.client, "build")
	child.End(3)
	subs := []events.Request{
		{Name: events.Line, Arguments: json.RawMessage(`{"pattern":"error|value"}`)}, {Name: events.CommandFinished}, {Name: events.Exited},
	}
	testkit.Eventually(t, patience, "the exit", func() bool {
		return strings.Contains(happened(t, w.client, localapi.EventsRequest{Subscriptions: subs}), "terminal.exited")
	})
	for who, c := range map[string]*localclient.Client{"an agent": w.client.As("claude"), "the person": w.client} {
		for _, raw := range []bool{false, true} {
			got := happened(t, c, localapi.EventsRequest{Subscriptions: subs, Raw: raw})
			for _, want := range []string{"main.c:1:2", "terminal.command_finished", `"exitCode":3`} {
				if !strings.Contains(got, want) {
					t.Errorf("%s is not told %s: %s", who, want, got)
				}
			}
			if who == "the person" && raw {
				if !strings.Contains(got, hushedToken) {
					t.Errorf("with raw, the person is not told: %s", got)
				}
				continue
			}
			tellsNone(t, who, got)
		}
	}
}

// A followed stream continues, and ends with the terminal; it has nothing that an agent
// may not see.
func TestEventsFollow(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	m, child := w.spawn("web")
	h, err := w.client.As("claude").Events(t.Context(), localapi.EventsRequest{Follow: true, Subscriptions: []events.Request{
		{Name: events.Line, Arguments: json.RawMessage(`{"pattern":"error","terminalId":"` + m.ID + `"}`)}}}, nil)
	must.Do(t, err)
	defer h.Close()
	if x, err := h.Next(); err != nil || !x.Active || x.Truncated {
		t.Fatalf("%+v, %v", x, err)
	}
	child.Print("an error\r\n")
	if x, err := h.Next(); err != nil || x.Event == nil || x.Event.Data["line"] != "an error" {
		t.Fatalf("%+v, %v", x, err)
	}
	child.End(0)
	if x, err := h.Next(); err != nil || !x.End || x.Error != nil {
		t.Fatalf("%+v, %v", x, err)
	}
	private := must.Get(w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Private: true}))(t)
	_, err = w.client.As("claude").Events(t.Context(), localapi.EventsRequest{Subscriptions: []events.Request{
		{Name: events.Line, Arguments: json.RawMessage(`{"pattern":"x","terminalId":"` + private.ID + `"}`)}}}, nil)
	wantCode(t, "a private terminal", err, localapi.CodeNoTerminal)
}

// An agent may have a command run for an event that it may run anyway.
func TestCommandsOnAnEvent(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	if err := w.client.MayRun(t.Context(), []string{"rm", "-rf", "/"}, testkit.Abs("/")); err != nil {
		t.Errorf("the person: %v", err)
	}
	err := w.client.As("claude").MayRun(t.Context(), []string{"sudo", "rm", "-rf", "/"}, testkit.Abs("/"))
	wantCode(t, "an agent", err, localapi.CodeDenied)
}
