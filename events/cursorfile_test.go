package events_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/events"
	"tether/internal/testkit/must"
)

// A cursor that is not text is refused, with the remedy.
func TestCursorFileThatIsNotText(t *testing.T) {
	for _, text := range []string{`\ud83d`, "\xe9"} {
		path := filepath.Join(t.TempDir(), "cursors")
		must.Do(t, os.WriteFile(path, []byte(`{"a":"`+text+`"}`), 0o600))
		if err := events.CursorFile(path).Recall(nil); err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
