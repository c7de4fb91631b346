package testkit

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A HostileAnswer is a host's answer to Method with a list of elements that cost much to
// decode.
type HostileAnswer struct{ Method, head, element, tail string }

// HostileAnswers has an answer for each list that answers of a host may contain. Their
// channels are ahp-terminal:/1, ahp-session:/1, ahp-chat:/1 and ahp-root://.
var HostileAnswers = map[string]HostileAnswer{
	"snapshots of initialize":     {"initialize", `{"protocolVersion":"1.0.0","serverSeq":1,"snapshots":[`, `{}`, `]}`},
	"characters of initialize":    {"initialize", `{"protocolVersion":"1.0.0","serverSeq":1,"snapshots":[],"completionTriggerCharacters":[`, `""`, `]}`},
	"marker of initialize":        {"initialize", `{"protocolVersion":"1.0.0","serverSeq":1,"snapshots":[],"clientTerminals":[`, `{}`, `]}`},
	"actions of reconnect":        {"reconnect", `{"type":"replay","missing":[],"actions":[`, `{}`, `]}`},
	"origins of reconnect":        {"reconnect", `{"type":"replay","missing":[],"actions":[`, `{"origin":{}}`, `]}`},
	"missing of reconnect":        {"reconnect", `{"type":"replay","actions":[],"missing":[`, `""`, `]}`},
	"snapshots of reconnect":      {"reconnect", `{"type":"snapshot","snapshots":[`, `{}`, `]}`},
	"content of a terminal":       {"subscribe", `{"snapshot":{"resource":"ahp-terminal:/1","fromSeq":1,"state":{"content":[`, `{}`, `]}}}`},
	"terminals of the root":       {"subscribe", `{"snapshot":{"resource":"ahp-root://","fromSeq":1,"state":{"terminals":[`, `{}`, `]}}}`},
	"agents of the root":          {"subscribe", `{"snapshot":{"resource":"ahp-root://","fromSeq":1,"state":{"agents":[`, `{}`, `]}}}`},
	"clients of a session":        {"subscribe", `{"snapshot":{"resource":"ahp-session:/1","fromSeq":1,"state":{"activeClients":[`, `{}`, `]}}}`},
	"requests in a session":       {"subscribe", `{"snapshot":{"resource":"ahp-session:/1","fromSeq":1,"state":{"inputNeeded":[`, `{}`, `]}}}`},
	"turns of a chat":             {"subscribe", `{"snapshot":{"resource":"ahp-chat:/1","fromSeq":1,"state":{"turns":[`, `{}`, `]}}}`},
	"tools of a session's client": {"subscribe", `{"snapshot":{"resource":"ahp-session:/1","fromSeq":1,"state":{"activeClients":[{"tools":[`, `{}`, `]}]}}}`},
}

// Result returns the answer's result, with about that many JSON values in its list.
func (a HostileAnswer) Result(values int) json.RawMessage {
	per := strings.Count(a.element, "{") + strings.Count(a.element, `""`)
	return json.RawMessage(a.head + strings.TrimSuffix(strings.Repeat(a.element+",", values/per), ",") + a.tail)
}

// LargeObject returns a JSON object with about that many values and bytes.
func LargeObject(values, bytes int) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"x":1`)
	for n := range values {
		fmt.Fprintf(&b, `,"%0*x":{}`, bytes/values-6, n)
	}
	b.WriteString(`}`)
	return json.RawMessage(b.String())
}
