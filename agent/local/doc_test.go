package local_test

import (
	"os"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/internal/testkit/must"
)

// The page that programs are written from knows every path.
func TestDocumentIsComplete(t *testing.T) {
	data := must.Get(os.ReadFile("../../docs/LOCAL-API.md"))(t)
	page := string(data)
	for _, pattern := range local.Patterns() {
		method, path, ok := strings.Cut(pattern, " ")
		if !ok {
			method, path = "", pattern
		}
		if !strings.Contains(page, strings.NewReplacer("{name}", "{name}", "{principal}", "{agent}").Replace(path)) || !strings.Contains(page, method) {
			t.Errorf("docs/LOCAL-API.md does not know %s", pattern)
		}
	}
}
