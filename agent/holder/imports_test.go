package holder_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport are all packages of a holder, apart from the standard library that they need.
// Each further package costs memory in each terminal's process.
var mayImport = []string{
	"github.com/creack/pty", "golang.org/x/sys/unix",
	"tether/agent/holder", "tether/agent/flow", "tether/agent/ring", "tether/internal/change", "tether/internal/idle", "tether/internal/retry", "tether/platform/ipc", "tether/platform/proc", "tether/platform/pty", "tether/platform/rawio",
}

// mustNotImport are heavy parts of the standard library.
var mustNotImport = []string{"net/http", "crypto/tls", "encoding/json", "text/template", "log", "flag", "regexp"}

func TestImportsLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skip("no go command:", err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		domain, _, _ := strings.Cut(pkg, "/")
		outside := strings.Contains(domain, ".") || domain == "tether"
		if outside && !slices.Contains(mayImport, pkg) || slices.Contains(mustNotImport, pkg) {
			t.Errorf("the holder imports %s", pkg)
		}
	}
}
