package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// What a machine says of a terminal that only reads a pane is in the catalogue, in the
// rows of the page and in the answers of agents.
func TestAdoptedIsShown(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "observer-o", "agent-bot")})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	p := clientTerminal("ahp-terminal:/web", "laptop")
	p.Meta = ahp.AddAdopted(nil, "kitty", true)
	must.Do(t, laptop.call(ahp.MethodCreateTerminal, p, nil))
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	var list []struct{ Adopted, Picture string }
	use(t, agent, "list_terminals", nil, &list)
	if len(list) != 1 || list[0].Adopted != "kitty" || list[0].Picture != "repeated picture" {
		t.Errorf("agents are told %+v", list)
	}
	if _, first := event(t, url, "observer-o"); !strings.Contains(first, `"adopted":"adopted from kitty, repeated picture"`) {
		t.Errorf("the page is told %s", first)
	}
	watcher := as(t, url, "observer-o", "watcher", viewOptions{})
	var got json.RawMessage
	must.Do(t, watcher.call(ahp.MethodSubscribe, ahp.SubscribeParams{Channel: "ahp-terminal:/web"}, &got))
	if !strings.Contains(string(got), `"tether/adopted":"kitty","tether/repeatedPicture":true`) {
		t.Errorf("a watcher is told %s", got)
	}
}
