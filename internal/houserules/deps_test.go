package houserules

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// modulesIn returns the modules that a go.mod requires, directly and indirectly, sorted.
func modulesIn(gomod string) []string {
	var modules []string
	inBlock := false
	for line := range strings.Lines(gomod) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "//"):
		case fields[0] == "require" && len(fields) == 2 && fields[1] == "(":
			inBlock = true
		case fields[0] == ")":
			inBlock = false
		case fields[0] == "require":
			modules = append(modules, fields[1])
		case inBlock:
			modules = append(modules, fields[0])
		}
	}
	slices.Sort(modules)
	return modules
}

// listed are the modules in docs/DEPENDENCIES.md, by section.
type listed struct{ direct, indirect []string }

// listedModule is an item: a module, the place of its use, and the reason.
var listedModule = regexp.MustCompile(`^- (\S+) \((.*?)\): *(.*)$`)

// parseListed reads the lists of the two sections on modules. Place and reason must not
// be empty.
func parseListed(page string) (listed, error) {
	var l listed
	section := ""
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		item := listedModule.FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case item == nil || section != "Used by our code" && section != "Come along with those":
		case item[2] == "" || item[3] == "":
			return l, fmt.Errorf("%s has no place or no reason", item[1])
		case section == "Used by our code":
			l.direct = append(l.direct, item[1])
		default:
			l.indirect = append(l.indirect, item[1])
		}
	}
	return l, nil
}

// moduleOf returns the module of an import path, "" for the standard library and for our
// own packages.
func moduleOf(importPath string, modules []string) string {
	best := ""
	for _, m := range modules {
		if (importPath == m || strings.HasPrefix(importPath, m+"/")) && len(m) > len(best) {
			best = m
		}
	}
	return best
}

// The bench is a module of its own. Its go.mod follows ours.
func TestBenchFollowsTheModules(t *testing.T) {
	t.Chdir(root)
	own := must.Get(os.ReadFile("go.mod"))(t)
	bench := must.Get(os.ReadFile("bench/go.mod"))(t)
	const remedy = "go mod tidy -C bench brings bench/go.mod up to go.mod"
	versions := map[string]string{}
	for line := range strings.Lines(string(own)) {
		if f := strings.Fields(line); len(f) > 1 {
			versions[f[0]] = f[1]
		}
	}
	for line := range strings.Lines(string(bench)) {
		f := strings.Fields(line)
		if len(f) > 1 && strings.HasPrefix(f[1], "v") && versions[f[0]] != "" && f[1] != versions[f[0]] {
			t.Errorf("%s is %s for the bench, %s otherwise: %s", f[0], f[1], versions[f[0]], remedy)
		}
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command:", err)
	}
	if out, err := exec.Command("go", "list", "-C", "bench", "-mod=readonly", "-deps", ".").CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", remedy, err, out)
	}
}

func TestDependenciesHaveReasons(t *testing.T) {
	t.Chdir(root)
	gomod := must.Get(os.ReadFile("go.mod"))(t)
	page := must.Get(os.ReadFile("docs/DEPENDENCIES.md"))(t)
	l := must.Get(parseListed(string(page)))(t)
	modules := modulesIn(string(gomod))
	all := slices.Concat(l.direct, l.indirect)
	slices.Sort(all)
	if !slices.Equal(all, modules) {
		t.Errorf("docs/DEPENDENCIES.md lists\n%s\ngo.mod has\n%s", strings.Join(all, "\n"), strings.Join(modules, "\n"))
	}
	if want := fmt.Sprintf("`go.mod` requires %d modules.", len(modules)); !strings.Contains(string(page), want) {
		t.Errorf("docs/DEPENDENCIES.md does not say %q", want)
	}
	for _, f := range parseTree(t) {
		f.imports(func(importPath string, spec node) {
			if m := moduleOf(importPath, modules); m != "" && !slices.Contains(l.direct, m) {
				t.Errorf("%s: %s is not among the modules used by our code in docs/DEPENDENCIES.md", f.at(spec), m)
			}
		})
	}
}

func TestDependencyPagesCanFail(t *testing.T) {
	t.Chdir(root)
	gomod := "module x\n\ngo 1.26\nrequire a.b/c v1.0.0\nrequire (\n\tb.c/d v1.2.3 // indirect\n\t// note\n\tb.c/a v1.0.0\n)\n"
	if got := modulesIn(gomod); !slices.Equal(got, []string{"a.b/c", "b.c/a", "b.c/d"}) {
		t.Errorf("modules of\n%s\nare %v", gomod, got)
	}
	for _, page := range []string{"## Used by our code\n- a.b/c (here): \n", "## Come along with those\n- a.b/c (): why\n"} {
		if l, err := parseListed(page); err == nil {
			t.Errorf("%q was accepted as %v", page, l)
		}
	}
	if l, err := parseListed("## Used by our code\n- a.b/c (`x`): why\n## Others\n- b.c/d (`x`): why\n"); err != nil || len(l.direct) != 1 || len(l.indirect) != 0 {
		t.Errorf("read as %v, %v", l, err)
	}
	if m := moduleOf("a.b/c/d/e", []string{"a.b/c", "a.b/c/d", "a.b"}); m != "a.b/c/d" {
		t.Errorf("longest module: %q", m)
	}
}
