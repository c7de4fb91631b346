package houserules

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// section returns the text of the section of docs/INTERNALS.md with a title.
func section(t *testing.T, title string) string {
	t.Helper()
	page := must.Get(os.ReadFile("docs/INTERNALS.md"))(t)
	_, text, found := strings.Cut(string(page), "\n## "+title+"\n")
	if !found {
		t.Fatalf("docs/INTERNALS.md has no section %q", title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// quoted returns the texts between backquotes.
func quoted(text string) (words []string) {
	for i, word := range strings.Split(text, "`") {
		if i%2 == 1 {
			words = append(words, word)
		}
	}
	return words
}

// Every package says in its comment what it is for: go list shows them all.
func TestEveryPackageIsDescribed(t *testing.T) {
	t.Chdir(root)
	described := map[string]bool{}
	for _, f := range parseTree(t) {
		if !f.isTest() {
			dir := f.dir()
			described[dir] = described[dir] || len(f.ast.Doc.Text()) > len("Package x does y.")
		}
	}
	for dir, ok := range described {
		if !ok {
			t.Errorf("package %s has no comment that says what it is for", dir)
		}
	}
	if len(described) < 80 {
		t.Errorf("only %d packages were found", len(described))
	}
}

// No page has the conflict markers of an unfinished merge.
func TestPagesAreMerged(t *testing.T) {
	t.Chdir(root)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md") {
		text := must.Get(os.ReadFile(page))(t)
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
				t.Errorf("%s:%d: the mark of an unfinished merge", page, i+1)
			}
		}
	}
}

// members is the set of names that can follow a dot: pairs of a package and a declaration
// in it, and pairs of a type and a field or method.
type members map[[2]string]bool

func (m members) add(f *file) {
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			m[[2]string{f.ast.Name.Name, d.Name.Name}] = true
			if d.Recv != nil {
				m[[2]string{receiver(d), d.Name.Name}] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				m.addSpec(f.ast.Name.Name, spec)
			}
		}
	}
}

func (m members) addSpec(pkg string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			m[[2]string{pkg, name.Name}] = true
		}
	case *ast.TypeSpec:
		m[[2]string{pkg, s.Name.Name}] = true
		ast.Inspect(s.Type, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok {
				for _, name := range field.Names {
					m[[2]string{s.Name.Name, name.Name}] = true
				}
			}
			return true
		})
	}
}

// receiver is the name of a method's type.
func receiver(d *ast.FuncDecl) (name string) {
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// dotted matches a name behind its package or type, as in ring.Log.
var dotted = regexp.MustCompile(`^\w+(\.\w+)+$`)

// The names of owners and goroutines in docs/INTERNALS.md exist in the code.
func TestInternalsNameExistingCode(t *testing.T) {
	t.Chdir(root)
	there := members{}
	for _, f := range parseTree(t) {
		if !f.isTest() {
			there.add(f)
		}
	}
	checked := 0
	for _, title := range []string{"Owners", "Goroutines"} {
		for _, word := range quoted(section(t, title)) {
			if !dotted.MatchString(word) || strings.HasSuffix(word, ".go") {
				continue
			}
			checked++
			names := strings.Split(word, ".")
			for i := range len(names) - 1 {
				if pair := [2]string(names[i : i+2]); !there[pair] {
					t.Errorf("docs/INTERNALS.md, %s: `%s`: %s has no %s", title, word, pair[0], pair[1])
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d names were found", checked)
	}
}

// docs/ARCHITECTURE.md is short, and the files that it names exist.
func TestMapNamesFiles(t *testing.T) {
	t.Chdir(root)
	page := must.Get(os.ReadFile("docs/ARCHITECTURE.md"))(t)
	if n := strings.Count(string(page), "\n"); n > 120 {
		t.Errorf("%d lines are more than three screens", n)
	}
	files := 0
	for _, word := range quoted(string(page)) {
		if !strings.HasSuffix(word, ".go") {
			continue
		}
		files++
		if _, err := os.Stat(word); err != nil {
			t.Error(err)
		}
	}
	if files < 20 {
		t.Errorf("only %d files were found", files)
	}
}
