package houserules

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"path"
	"slices"
	"strings"
	"testing"
)

// systemPlaces are the packages and files that may contain differences between systems.
// Tests may contain them anywhere.
var systemPlaces = []string{"platform/*", "installer", "installer/*", "cmd/tether/service*.go"}

// confined lists imports of other modules, the only places that may use them, and the
// reason. Modules that are not listed may be imported anywhere, if docs/DEPENDENCIES.md
// has them.
var confined = []struct {
	prefix string
	places []string
	why    string
}{
	{"golang.org/x/sys", systemPlaces, "differences between systems live in one place"},
	{"syscall", append([]string{"cmd/*", "cmd/tether/internal/attach"}, systemPlaces...), "differences between systems live in one place"},
	{"unsafe", systemPlaces, "only system calls need it"},
	{"github.com/creack/pty", []string{"platform/pty", "bench"}, "it hands out blocking descriptors; platform/pty does not"},
	{"github.com/coder/websocket", []string{"jsonrpc/wsconn", "agent/local", "agent/localclient"}, "the doors set its limits and check origins"},
	{"github.com/pelletier/go-toml", []string{"agent/config", "internal/progentry"}, "there is one configuration file, and its errors are ours; files of agents are only checked"},
	{"github.com/tailscale/hujson", []string{"internal/progentry"}, "only files of other programs have comments in JSON"},
	{"github.com/zalando/go-keyring", []string{"platform/keyring"}, "it may hang"},
	{"github.com/godbus/dbus", []string{"platform/notify"}, "who answers on the session's bus is checked in one place"},
	{"github.com/kardianos/service", []string{"installer"}, "it registers the service of the machine on Windows"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"mcp"}, "one package speaks the protocol"},
	{"charm.land/bubbletea", []string{"cmd/tether/internal/tui"}, "only the command line has a screen"},
	{"github.com/rs/zerolog", []string{"agent", "agent/*", "host", "host/*", "cmd/*"}, "libraries return errors, they do not log"},
	{"github.com/spf13/cobra", []string{"cmd/*", "internal/manual"}, "only commands have flags"},
	{"rsc.io/qr", []string{"internal/qr"}, "one package draws codes"},
	{"golang.org/x/term", []string{"platform/tty"}, "one package sets the modes of the person's terminal"},
}

// systemTags are the build tags by which files differ between systems.
var systemTags = map[string]bool{
	"aix": true, "android": true, "darwin": true, "dragonfly": true, "freebsd": true, "illumos": true, "ios": true, "js": true,
	"linux": true, "netbsd": true, "openbsd": true, "plan9": true, "solaris": true, "wasip1": true, "windows": true, "unix": true,
	"cgo": true, "386": true, "amd64": true, "arm": true, "arm64": true, "loong64": true, "mips64": true, "ppc64le": true,
	"riscv64": true, "s390x": true, "wasm": true,
}

func matchesAny(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		if err != nil {
			panic(err) // a broken pattern in this file
		}
		return ok
	})
}

// isIn reports whether the file or its package matches one of the patterns in places.
func (f *file) isIn(places []string) bool {
	return matchesAny(f.dir(), places) || matchesAny(f.name, places)
}

// checkConfined returns the places where a file breaks the rules of confined and
// systemPlaces.
func checkConfined(f *file) []string {
	if f.isTest() {
		return nil
	}
	var bad []string
	f.imports(func(importPath string, spec node) {
		for _, c := range confined {
			if (importPath == c.prefix || strings.HasPrefix(importPath, c.prefix+"/")) && !f.isIn(c.places) {
				bad = append(bad, fmt.Sprintf("%s: %s is only for %s: %s", f.at(spec), importPath, strings.Join(c.places, ", "), c.why))
			}
		}
	})
	if f.isIn(systemPlaces) {
		return bad
	}
	if tag := suffixTag(path.Base(f.name)); tag != "" {
		bad = append(bad, fmt.Sprintf("%s: its name makes it a file for %s only", f.name, tag))
	}
	for _, tag := range constraintTags(f) {
		bad = append(bad, fmt.Sprintf("%s: its build constraint names %s", f.name, tag))
	}
	ast.Inspect(f.ast, func(n node) bool {
		if isSelector(n, "runtime", "GOOS") || isSelector(n, "runtime", "GOARCH") {
			bad = append(bad, f.at(n)+": asks which system it runs on")
		}
		return true
	})
	return bad
}

// suffixTag returns the system or architecture at the end of a file name such as
// a_linux.go or a_linux_arm64.go, or "".
func suffixTag(base string) string {
	parts := strings.Split(strings.TrimSuffix(base, ".go"), "_")
	if last := parts[len(parts)-1]; len(parts) > 1 && systemTags[last] && last != "unix" && last != "cgo" {
		return last
	}
	return ""
}

func constraintTags(f *file) []string {
	var tags []string
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) || c.Pos() > f.ast.Package {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				return []string{err.Error()}
			}
			expr.Eval(func(tag string) bool { // Eval calls it for every tag, whatever it returns
				if systemTags[tag] && !slices.Contains(tags, tag) {
					tags = append(tags, tag)
				}
				return true
			})
		}
	}
	return tags
}

func TestSystemsAndModulesConfined(t *testing.T) {
	t.Chdir(root)
	for _, f := range parseTree(t) {
		report(t, checkConfined(f))
	}
}

func TestConfinementCanFail(t *testing.T) {
	t.Chdir(root)
	for _, c := range []struct {
		name, src string
		bad       int
	}{
		{"agent/term/a.go", `package term; import "golang.org/x/sys/unix"`, 1},
		{"agent/term/a.go", `package term; import ("syscall"; "github.com/rs/zerolog/log")`, 1},
		{"agent/term/a_linux.go", `package term`, 1},
		{"agent/term/a_linux_test.go", `package term`, 0},
		{"agent/term/a_windowsill.go", `package term`, 0},
		{"agent/term/a.go", "//go:build !windows && !darwin\n\npackage term", 2},
		{"agent/term/a.go", "//go:build linux || darwin\n\npackage term", 2},
		{"agent/term/a.go", "//go:build ignore\n\npackage term", 0},
		{"agent/term/a.go", `package term; import "runtime"; var windows = runtime.GOOS == "windows"`, 1},
		{"platform/pty/a_linux.go", `package pty; import ("golang.org/x/sys/unix"; "github.com/creack/pty")`, 0},
		{"cmd/tether/service_windows.go", `package main; import "golang.org/x/sys/windows"`, 0},
		{"cmd/tether/run.go", `package main; import "golang.org/x/sys/windows"`, 1},
		{"shellint/a.go", `package shellint; import "github.com/rs/zerolog"`, 1},
	} {
		if bad := checkConfined(mustParse(t, c.name, c.src)); len(bad) != c.bad {
			t.Errorf("%s with %q: complaints %q, want %d", c.name, c.src, bad, c.bad)
		}
	}
}
