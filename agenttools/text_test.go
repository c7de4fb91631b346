package agenttools_test

import (
	"strings"
	"testing"

	"tether/agenttools"
)

// Arguments with text that package json would replace are refused: a model would run
// another command than it has named.
func TestDecodeRefusesBrokenText(t *testing.T) {
	for _, text := range []string{`\ud83d`, "\xe9"} {
		var in struct {
			Command []string `json:"command"`
		}
		if err := agenttools.Decode([]byte(`{"command":["`+text+`"]}`), &in); err == nil || !strings.HasPrefix(err.Error(), "arguments: it ") {
			t.Errorf("%q: %v, %q", text, err, in.Command)
		}
	}
}
