package client_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"tether/ahp"
	"tether/ahp/client"
)

// brokenTexts are the insides of JSON strings that package json would replace.
var brokenTexts = map[string]string{"half a character": `\ud83d`, "not UTF-8": "a\xe9"}

// What a host says in text that is not Unicode is refused, except output, which is shown
// with U+FFFD.
func TestBrokenTextOfHosts(t *testing.T) {
	for name, text := range brokenTexts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, ch := newHost(t)
				c := connect(t, ch, client.Options{ClientID: "laptop"})
				h.answer(ahp.MethodListSessions, json.RawMessage(`{"items":[],"nextCursor":"`+text+`"}`))
				if got, err := c.ListSessions(t.Context(), ahp.ListSessionsParams{}); err == nil {
					t.Errorf("a result was taken: %+v", got)
				}
				h.serve(ahp.MethodSubscribe, func(params []byte) (any, error) {
					var p ahp.SubscribeParams
					err := ahp.DecodeParams(params, &p)
					return json.RawMessage(`{"snapshot":{"resource":"` + p.Channel + `","fromSeq":1,"state":{"title":"` + text + `"}}}`), err
				})
				if _, err := c.Subscribe(t.Context(), "ahp-session:/1"); err == nil {
					t.Error("a session's state was taken")
				}
				if _, err := c.Subscribe(t.Context(), uri); err != nil {
					t.Errorf("a terminal's output: %v", err)
				}
			})
			if _, err := ahp.DecodeAction([]byte(`{"type":"terminal/input","data":"` + text + `"}`)); err == nil {
				t.Error("input was taken")
			}
			if _, err := ahp.DecodeAction([]byte(`{"type":"novelty","x":"` + text + `"}`)); err == nil {
				t.Error("an unknown action was taken")
			}
			if _, err := ahp.DecodeAction([]byte(`{"type":"terminal/data","data":"` + text + `"}`)); err != nil {
				t.Errorf("output: %v", err)
			}
			h, ch := newHost(t)
			h.answer(ahp.MethodInitialize, json.RawMessage(`{"protocolVersion":"1.0.0","serverSeq":1,"x":"`+text+`"}`))
			if c, err := client.ConnectChannel(context.Background(), ch, client.Options{ClientID: "laptop"}); err == nil {
				c.Close()
				t.Error("an answer to initialize was taken")
			}
		})
	}
}
