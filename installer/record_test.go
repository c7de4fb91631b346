package installer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An installed file holds the record from which it was rendered.
func TestRecords(t *testing.T) {
	for name, s := range services {
		for kind, text := range map[string]string{"unit": SystemdUnit(s), "list": LaunchdPlist(s, "/tmp/log")} {
			got, ok := recorded(text)
			if diff := cmp.Diff(s, got); !ok || diff != "" {
				t.Errorf("%s %s: found %v, -want +got\n%s", kind, name, ok, diff)
			}
		}
	}
	for _, text := range []string{"", "[Service]\nExecStart=/bin/true\n", "# " + madeBy, "# " + madeBy + "\n# " + recordMark + "nonsense", "# " + recordMark + "{}"} {
		if s, ok := recorded(text); ok {
			t.Errorf("%q is taken for ours: %+v", text, s)
		}
	}
}

// For any paths, the record of a service that passes Check is one line of its unit, its
// property list is valid XML, and reading the record back gives the same service.
func FuzzRendering(f *testing.F) {
	f.Add("/usr/bin/tether", "/home/x", "/c")
	f.Add("/a b\\", `/100% "q" $HOME`, "/--> ]]> <x> & ;'")
	f.Fuzz(func(t *testing.T, program, home, config string) {
		s := Service{Program: program, Home: home, Env: []string{"XDG_CONFIG_HOME=" + config}, User: "dev", UID: 7, UserHome: "/home/dev", System: true}
		if s.Check("linux") != nil {
			return
		}
		unit, list := SystemdUnit(s), LaunchdPlist(s, "/l")
		if got, ok := recorded(unit); !ok || !cmp.Equal(s, got) {
			t.Errorf("unit: %+v became %+v, %v", s, got, ok)
		}
		if got, ok := recorded(list); !ok || !cmp.Equal(s, got) {
			t.Errorf("list: %+v became %+v, %v", s, got, ok)
		}
		checkPlist(t, list)
		want := strings.Count(SystemdUnit(Service{Program: "/t", Home: "/h", Env: []string{"X=/y"}, System: true}), "\n")
		if home == "" {
			want--
		}
		if got := strings.Count(unit, "\n"); got != want {
			t.Errorf("%d lines, want %d:\n%s", got, want, unit)
		}
	})
}
