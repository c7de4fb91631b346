package mcp_test

import (
	"strings"
	"testing"

	"tether/internal/testkit/must"
	"tether/mcp"
)

// Clients that show their model only the names of tools find the right one by what people
// ask for: in what Claude Code searches, and in descriptions, which others search. The
// instructions name the ways that nobody would look for.
func TestToolsAreFound(t *testing.T) {
	session := one(t, &fakeTerminals{})
	tools := must.Get(session.ListTools(t.Context(), nil))(t)
	for tool, asked := range map[string][]string{
		"problems":       {"compile", "errors", "failed", "tests", "warnings"},
		"read_terminal":  {"dev", "server", "print", "logs"},
		"list_terminals": {"dev", "server", "running"},
		"wait_terminal":  {"port", "line", "finished"},
	} {
		found := false
		for _, is := range tools.Tools {
			if is.Name != tool {
				continue
			}
			found = true
			hint, _ := is.Meta["anthropic/searchHint"].(string)
			if is.Meta["anthropic/alwaysLoad"] != true {
				t.Errorf("%s is not always loaded: %v", tool, is.Meta)
			}
			for _, word := range asked {
				if !strings.Contains(hint, word) || !strings.Contains(is.Description, word) {
					t.Errorf("%s is not found by %q", tool, word)
				}
			}
		}
		if !found {
			t.Errorf("there is no %s", tool)
		}
	}
	if guide := session.InitializeResult().Instructions; strings.Count(guide, "- problems lists") != 1 || strings.Count(guide, `"digest" sums`) != 1 || strings.Count(guide, "- wait_terminal waits") != 1 {
		t.Errorf("the instructions are %s", guide)
	}
	reader := connect(t, newServer(t, mcp.Options{Tools: toolsOver(readOnly{&fakeTerminals{}})}), nil)
	if guide := reader.InitializeResult().Instructions; !strings.Contains(guide, "- problems lists") || !strings.Contains(guide, `"digest" sums`) || !strings.Contains(guide, "- wait_terminal waits") {
		t.Errorf("the instructions of a reader are %s", guide)
	}
}
