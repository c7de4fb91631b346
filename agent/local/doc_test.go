package local_test

import (
	"os"
	"strings"
	"testing"

	"tether/agent/local"
)

// The page that programs are written from knows every path.
func TestDocumentIsComplete(t *testing.T) {
	data, err := os.ReadFile("../../docs/LOCAL-API.md")
	if err != nil {
		t.Fatal(err)
	}
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
