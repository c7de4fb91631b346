package houserules

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// dear are packages whose functions nothing calls while a program starts: every command
// would pay for it, however little it does.
var dear = []string{"regexp", "template", "os", "exec"}

// checkStart returns the calls of dear functions while a package is initialised, in its
// variables and in init, also those in functions of this package that are called there.
// files are those of one package.
func checkStart(files []*file) (bad []string) {
	bodies := map[string]node{}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Body != nil && fn.Name.Name != "init" {
				bodies[fn.Name.Name] = fn.Body
			}
		}
	}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			if runsAtStart(d) {
				bad = append(bad, dearCalls(f, d, d, bodies)...)
			}
		}
	}
	return bad
}

func runsAtStart(d ast.Decl) bool {
	switch d := d.(type) {
	case *ast.GenDecl:
		return d.Tok == token.VAR
	case *ast.FuncDecl:
		return d.Recv == nil && d.Name.Name == "init"
	}
	return false
}

// dearCalls returns the dear calls that evaluating n makes. A function literal counts
// only where it is called. at is what the complaint points to.
func dearCalls(f *file, at, n node, bodies map[string]node) (bad []string) {
	ast.Inspect(n, func(n node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch fun := call.Fun.(type) {
		case *ast.FuncLit:
			bad = append(bad, dearCalls(f, at, fun.Body, bodies)...)
		case *ast.Ident:
			if body := bodies[fun.Name]; body != nil {
				delete(bodies, fun.Name) // it may call itself
				bad = append(bad, dearCalls(f, at, body, bodies)...)
			}
		case *ast.SelectorExpr:
			if x, ok := fun.X.(*ast.Ident); ok && slices.Contains(dear, x.Name) {
				bad = append(bad, f.at(at)+": "+x.Name+"."+fun.Sel.Name+" runs whenever the program starts: see lazyregexp.New and sync.OnceValue")
			}
		}
		return true
	})
	return bad
}

func TestPackagesStartAtOnce(t *testing.T) {
	t.Chdir(root)
	packages := map[string][]*file{}
	for _, f := range parseTree(t) {
		if !f.isTest() && !f.isIn([]string{"internal/tools/*", "internal/testkit", "internal/testkit/*", "internal/acpschema"}) {
			packages[f.dir()] = append(packages[f.dir()], f)
		}
	}
	for _, files := range packages {
		report(t, checkStart(files))
	}
}

func TestStartRuleCanFail(t *testing.T) {
	for _, c := range []struct {
		src string
		bad int
	}{
		{"import \"regexp\"; var a = regexp.MustCompile(`a`)", 1},
		{"import \"regexp\"; var a = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`a`) })", 0},
		{"import \"regexp\"; var a = all(); func all() *regexp.Regexp { return one(`a`) }; func one(s string) *regexp.Regexp { all(); return regexp.MustCompile(s) }", 1},
		{"import \"regexp\"; var a = func() *regexp.Regexp { return regexp.MustCompile(`a`) }()", 1},
		{"import \"regexp\"; func init() { println(regexp.MustCompile(`a`)) }", 1},
		{"import \"regexp\"; func f() { println(regexp.MustCompile(`a`)) }", 0},
		{"import \"html/template\"; var page = template.Must(template.New(``).Parse(``))", 2},
	} {
		if bad := checkStart([]*file{mustParse(t, "a/a.go", "package a; "+c.src)}); len(bad) != c.bad {
			t.Errorf("%s: %q, want %d complaints", c.src, bad, c.bad)
		}
	}
}
