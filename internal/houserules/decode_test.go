package houserules

import (
	"go/ast"
	"strings"
	"testing"
)

// rawDecoders are the places that decode JSON with package json itself, which replaces
// text that is not Unicode without a word, and why that is right there. Everything else
// uses jsonspan.Unmarshal or jsonspan.Decode, which refuse such text. A name with a slash
// at its end stands for everything below it.
var rawDecoders = map[string]string{
	"internal/jsonspan/": "it is where text is checked",

	// Checked before.
	"agent/acp/params.go":       "checks first",
	"agent/local/server.go":     "checks first",
	"agent/local/ui_message.go": "checks first",
	"agenttools/tool.go":        "checks first",
	"host/webhook/webhook.go":   "checks first",
	"ahp/":                      "types inside params, results and actions, which are checked as a whole; output may have anything",
	"agent/acp/message.go":      "ids and methods, which are compared and echoed as they came",
	"mcp/stdio.go":              "the id of a message that is refused",

	"agent/adopt/": "titles and text of panes of other programs, which are only shown",

	// What this program has written itself.
	"agent/audit/verify.go":         "the daemon's own log",
	"agent/declared/store.go":       "the daemon's own file",
	"agent/identity.go":             "the daemon's own file",
	"agent/local/agents.go":         "the daemon's own files",
	"agent/output/":                 "what holders keep of a terminal's output",
	"agent/term/":                   "records of holders",
	"cmd/tether/":                   "the daemon's log, the audit log, and lines that are passed on as they are",
	"host/access/owners.go":         "a file of the host's own",
	"host/cluster/":                 "messages of the host's nodes",
	"host/devices/nodes.go":         "messages of the host's nodes",
	"host/leader/":                  "messages of the host's nodes",
	"host/terminals/mirror_feed.go": "messages of the host's nodes",
	"host/output/follow.go":         "messages of the host's nodes",
	"host/sessions/nodes.go":        "messages of the host's nodes",
	"host/terminals/feed.go":        "messages that the host has encoded",
	"host/oidc/seal.go":             "what the provider's part has sealed itself",
	"installer/service.go":          "the record in a service's file",
	"mcp/events.go":                 "answers of the SDK",
	"mcp/middleware.go":             "answers of the SDK",
	"platform/sandbox/":             "orders of the program to its child",
	"platform/secret/json.go":       "state files",
	"problems/builtin.go":           "files in the program",
	"internal/asciicast/":           "recordings: output, which may have anything",
	"internal/progentry/jsonc.go":   "agents' settings: what is not tether's stays as it is, byte by byte",
	"internal/acpschema/":           "for tests",
	"bench/":                        "for measurements",
	"internal/tools/":               "for builds",
	"internal/xterm/":               "for tests",
	"host/conform/":                 "what a host answers is judged there",
}

// Text from outside is refused if it is not Unicode, not repaired.
func TestJSONFromOutside(t *testing.T) {
	t.Chdir(root)
	below := func(name, place string) bool {
		return name == place || strings.HasSuffix(place, "/") && strings.HasPrefix(name, place)
	}
	used := map[string]bool{}
	for _, f := range parseTree(t) {
		if f.isTest() {
			continue
		}
		ast.Inspect(f.ast, func(n node) bool {
			if !isSelector(n, "json", "Unmarshal") && !isSelector(n, "json", "NewDecoder") {
				return true
			}
			known := false
			for place := range rawDecoders {
				if below(f.name, place) {
					known, used[place] = true, true
				}
			}
			if !known {
				t.Errorf("%s: package json replaces text that is not Unicode: use jsonspan, or say in rawDecoders why it may", f.name)
			}
			return true
		})
	}
	for place := range rawDecoders {
		if !used[place] {
			t.Errorf("rawDecoders: %s does not decode JSON with package json", place)
		}
	}
}
