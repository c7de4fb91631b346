package ahp_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
)

func TestFlowParams(t *testing.T) {
	subscribe := func(receive string) string {
		return `{"channel":"ahp-terminal:/t","flowControl":{"receive":` + receive + `}}`
	}
	for _, test := range []struct {
		name, text string
		into       interface{ Validate() error }
		ok         bool
	}{
		{"ordinary", `{"channel":"ahp-terminal:/t"}`, &ahp.SubscribeParams{}, true},
		{"windowed", subscribe(`{"windowBytes":1,"maximumFrameBytes":9007199254740991,"maximumMessageBytes":3}`), &ahp.SubscribeParams{}, true},
		{"nothing offered", subscribe(`{}`), &ahp.SubscribeParams{}, false},
		{"zero", subscribe(`{"windowBytes":0,"maximumFrameBytes":2,"maximumMessageBytes":3}`), &ahp.SubscribeParams{}, false},
		{"negative", subscribe(`{"windowBytes":1,"maximumFrameBytes":-2,"maximumMessageBytes":3}`), &ahp.SubscribeParams{}, false},
		{"beyond 2^53-1", subscribe(`{"windowBytes":1,"maximumFrameBytes":2,"maximumMessageBytes":9007199254740992}`), &ahp.SubscribeParams{}, false},
		{"a frame", `{"channel":"ahp-terminal:/t","data":"{"}`, &ahp.FrameParams{}, true},
		{"a frame without text", `{"channel":"ahp-terminal:/t","data":"","final":true}`, &ahp.FrameParams{}, false},
		{"a frame of nothing", `{"channel":"nothing","data":"x"}`, &ahp.FrameParams{}, false},
		{"credit", `{"channel":"ahp-terminal:/t","consumedBytes":0}`, &ahp.CreditParams{}, true},
		{"negative credit", `{"channel":"ahp-terminal:/t","consumedBytes":-1}`, &ahp.CreditParams{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := json.Unmarshal([]byte(test.text), test.into); err != nil {
				t.Fatal(err)
			}
			if err := test.into.Validate(); (err == nil) != test.ok {
				t.Errorf("%s: %v", test.text, err)
			}
		})
	}
}

// What is ordinary looks as it always did.
func TestOrdinaryDeliveryIsNotMentioned(t *testing.T) {
	for want, v := range map[string]any{
		`{"channel":"ahp-root://"}`: ahp.SubscribeParams{Channel: ahp.RootURI},
		`{"snapshot":{"resource":"ahp-root://","state":{},"fromSeq":1}}`: ahp.SubscribeResult{Snapshot: &ahp.Snapshot{
			Resource: ahp.RootURI, State: json.RawMessage(`{}`), FromSeq: 1}},
	} {
		got, err := json.Marshal(v)
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
