package host_test

import (
	"slices"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// Tools of a machine are offered to its owner's operators alone, and a session belongs to
// the person of its creator.
func TestSessionsBelongToPeople(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "machine.desk.bob", "operator.doer.ann", "operator.other.bob", "admin.max.bob", "admin.root.", "observer.ann.ann", "agent.helper.ann")
	_, url := serve(t, host.Options{Access: s, People: s, Sessions: true})
	own := map[string]*viewer{}
	for _, token := range []string{"operator.doer.ann", "operator.other.bob"} {
		agent := must.Get(overLines(t, url, token, nil))(t)
		if _, err := agent.ListTools(t.Context(), nil); err != nil { // so that it has a session
			t.Fatal(err)
		}
	}
	sessions := map[string][]ahp.SessionSummary{}
	for _, token := range []string{"operator.doer.ann", "operator.other.bob", "machine.laptop.ann", "machine.desk.bob", "admin.max.bob", "admin.root.", "observer.ann.ann", "agent.helper.ann"} {
		own[token] = as(t, url, token, token, viewOptions{})
		sessions[token] = listSessions(t, own[token])
	}
	for token, title := range map[string]string{"operator.doer.ann": "agent doer", "machine.laptop.ann": "agent doer", "operator.other.bob": "agent other", "machine.desk.bob": "agent other", "admin.max.bob": "agent other"} {
		if got := sessions[token]; len(got) != 1 || got[0].Title != title {
			t.Errorf("%s sees %v, want %s", token, got, title)
		}
	}
	for _, token := range []string{"admin.root.", "observer.ann.ann", "agent.helper.ann"} {
		if len(sessions[token]) != 0 {
			t.Errorf("%s sees %v", token, sessions[token])
		}
	}
	doers := sessions["operator.doer.ann"][0].Resource
	unknown := code(own["machine.desk.bob"].subscribe("ahp-session:/none"))
	for _, token := range []string{"machine.desk.bob", "operator.other.bob", "admin.max.bob", "admin.root."} {
		v := own[token]
		if got := code(v.subscribe(doers)); got != unknown {
			t.Errorf("%s subscribes to a session of Ann's: %d, of none: %d", token, got, unknown)
		}
		if got, none := v.rejected(doers, joins(v.id)), v.rejected("ahp-session:/none", joins(v.id)); got == "" || none == "" {
			t.Errorf("%s joins a session of Ann's: %q, none: %q", token, got, none)
		}
		if got := code(v.call(ahp.MethodDisposeSession, ahp.DisposeSessionParams{Channel: doers}, nil)); got != int64(ahp.CodeSessionNotFound) {
			t.Errorf("%s disposes of a session of Ann's: %d", token, got)
		}
	}
	own["machine.laptop.ann"].subscribe(doers)
	if why := own["machine.laptop.ann"].rejected(doers, joins("machine.laptop.ann")); why != "" {
		t.Fatal(why)
	}
	for token, want := range map[string]bool{"operator.doer.ann": true, "operator.other.bob": false} {
		agent := must.Get(overLines(t, url, token, nil))(t)
		tools := must.Get(agent.ListTools(t.Context(), nil))(t)
		var names []string
		for _, tool := range tools.Tools {
			names = append(names, tool.Name)
		}
		if got := slices.Contains(names, "laptop__run"); got != want {
			t.Errorf("%s is offered %v", token, names)
		}
	}
}

// joins is an action by which a client publishes a tool.
func joins(client string) ahp.Action {
	return ahp.SessionActiveClientSet{ActiveClient: ahp.ActiveClient{ClientID: client, Tools: []ahp.ToolDefinition{{Name: "run", InputSchema: []byte(`{"type":"object"}`)}}}}
}
