package localapi

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/must"
)

// Each code has its statuses, and the page that programs are written from knows it.
func TestCodes(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/LOCAL-API.md"))(t)
	for code, m := range meaning {
		if m.http < 400 || m.exit < 1 || m.exit > 8 {
			t.Errorf("%s means HTTP %d, exit status %d", code, m.http, m.exit)
		}
		if !strings.Contains(string(page), "`"+string(code)+"`") {
			t.Errorf("docs/LOCAL-API.md does not know the code %s", code)
		}
	}
}

func FuzzControl(f *testing.F) {
	for _, c := range []Control{{Type: ControlResize, Cols: 1, Rows: 2}, {Type: ControlExit, Code: -1, Signal: "SIGKILL"},
		{Type: ControlDropped, Message: "\"<>\u2028"}} {
		f.Add(c.Encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseControl(data)
		if err != nil {
			return
		}
		again, err := ParseControl(c.Encode())
		if err != nil || !cmp.Equal(again, c) {
			t.Errorf("%q: %+v became %+v, %v", data, c, again, err)
		}
	})
}
