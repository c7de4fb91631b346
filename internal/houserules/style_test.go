package houserules

import (
	"bytes"
	"fmt"
	"go/ast"
	"strings"
	"testing"
	"unicode/utf8"
)

// Sizes of code that is not test code, in lines.
const (
	maxFile     = 600
	maxFunc     = 100
	longFunc    = 60 // at most longPercent of all functions may be longer
	longPercent = 2
)

// maxComment is the width of a comment, in columns, with tabs of four.
const maxComment = 90

// checkStyle returns the style faults of one file.
func checkStyle(f *file) []string {
	bad := checkWidth(f)
	if f.isTest() {
		return append(append(bad, checkSleep(f)...), checkHurry(f)...)
	}
	if n := bytes.Count(f.src, []byte("\n")); n > maxFile && !ast.IsGenerated(f.ast) {
		bad = append(bad, fmt.Sprintf("%s: %d lines, at most %d: split it by concept", f.name, n, maxFile))
	}
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && f.lines(fn) > maxFunc {
			bad = append(bad, fmt.Sprintf("%s: %s has %d lines, at most %d", f.at(fn), fn.Name.Name, f.lines(fn), maxFunc))
		}
	}
	return append(append(bad, checkExits(f)...), checkDocs(f)...)
}

func (f *file) lines(n node) int {
	return f.fset.Position(n.End()).Line - f.fset.Position(n.Pos()).Line + 1
}

// checkWidth finds comments that are wider than they may be. Code and drawings, which are
// indented within the comment, and words that cannot be divided, such as URLs, may be
// wider. So may comments behind code.
func checkWidth(f *file) []string {
	var bad []string
	lines := strings.Split(string(f.src), "\n")
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			at := f.fset.Position(c.Pos())
			text, ok := strings.CutPrefix(c.Text, "// ")
			if !ok || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "Output:") || !strings.Contains(text, " ") {
				continue
			}
			before := lines[at.Line-1][:at.Column-1]
			if strings.TrimSpace(before) == "" && 4*len(before)+utf8.RuneCountInString(c.Text) > maxComment {
				bad = append(bad, fmt.Sprintf("%s: a comment wider than %d columns", f.at(c), maxComment))
			}
		}
	}
	return bad
}

// checkSleep finds tests that call time.Sleep. In a bubble of testing/synctest they may,
// because a sleep moves the fake clock: within a call of synctest.Test, or in a function
// that calls synctest.Wait, which panics outside of a bubble.
func checkSleep(f *file) []string {
	var bad []string
	ast.Inspect(f.ast, func(n node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !isSelector(n.Fun, "synctest", "Test")
		case *ast.FuncDecl:
			return !contains(n, "synctest", "Wait")
		}
		if isSelector(n, "time", "Sleep") {
			bad = append(bad, f.at(n)+": sleeps; wait for what should happen (testkit.Eventually) or fake the clock (testing/synctest)")
		}
		return true
	})
	return bad
}

// checkHurry finds tests that give up within seconds: a machine that runs many tests at
// once may stand still for longer.
func checkHurry(f *file) []string {
	var bad []string
	ast.Inspect(f.ast, func(n node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && isSelector(call.Fun, "testkit", "Eventually") && len(call.Args) > 1 &&
			(contains(call.Args[1], "time", "Second") || contains(call.Args[1], "time", "Millisecond")) {
			bad = append(bad, f.at(n)+": waits for some seconds only; testkit.Patience is for what must happen")
		}
		return true
	})
	return bad
}

func contains(root node, pkg, name string) (found bool) {
	ast.Inspect(root, func(n node) bool {
		found = found || isSelector(n, pkg, name)
		return !found
	})
	return found
}

// checkExits finds code outside of commands that ends the process.
func checkExits(f *file) []string {
	if f.isCommand() {
		return nil
	}
	var bad []string
	ast.Inspect(f.ast, func(n node) bool {
		for _, x := range [][2]string{{"os", "Exit"}, {"log", "Fatal"}, {"log", "Fatalf"}, {"log", "Fatalln"}} {
			if isSelector(n, x[0], x[1]) {
				bad = append(bad, fmt.Sprintf("%s: %s.%s; only commands end the process", f.at(n), x[0], x[1]))
			}
		}
		return true
	})
	return bad
}

// undocumented are methods that need no comment, because an interface of the standard
// library defines them.
var undocumented = map[string]bool{
	"Error": true, "Unwrap": true, "Is": true, "As": true, "String": true, "MarshalJSON": true, "UnmarshalJSON": true,
	"Len": true, "Less": true, "Swap": true,
}

// checkDocs demands a comment that starts with the name for every exported function,
// type, constant and variable, and for exported methods of exported types. A constant or
// variable in a group may instead have a comment at the end of its line, or share the
// group's comment.
func checkDocs(f *file) []string {
	var bad []string
	want := func(n node, name string, docs ...*ast.CommentGroup) {
		for _, doc := range docs {
			if startsWith(doc.Text(), name) {
				return
			}
		}
		bad = append(bad, fmt.Sprintf("%s: exported %s has no comment that starts with its name", f.at(n), name))
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverExported(d) && (d.Recv == nil || !undocumented[d.Name.Name]) {
				want(d, d.Name.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				checkSpec(d, spec, want)
			}
		}
	}
	return bad
}

func checkSpec(d *ast.GenDecl, spec ast.Spec, want func(node, string, ...*ast.CommentGroup)) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			want(s, s.Name.Name, s.Doc, d.Doc)
		}
	case *ast.ValueSpec:
		if d.Lparen.IsValid() && (d.Doc != nil || s.Doc != nil || s.Comment != nil) {
			return
		}
		for _, name := range s.Names {
			if name.IsExported() {
				want(s, name.Name, s.Doc, d.Doc)
			}
		}
	}
}

// startsWith reports whether doc starts with name, perhaps behind an article.
func startsWith(doc, name string) bool {
	for _, article := range []string{"A ", "An ", "The "} {
		doc = strings.TrimPrefix(doc, article)
	}
	rest, ok := strings.CutPrefix(doc, name)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], " ,.:;'(\n"))
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}

func TestStyle(t *testing.T) {
	t.Chdir(root)
	var long []string
	total := 0
	documented, packages := map[string]bool{}, map[string]bool{}
	for _, f := range parseTree(t) {
		report(t, checkStyle(f))
		if f.isTest() {
			continue
		}
		packages[f.dir()] = true
		if f.ast.Doc != nil && len(f.ast.Doc.Text()) > 0 {
			documented[f.dir()] = true
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				total++
				if n := f.lines(fn); n > longFunc {
					long = append(long, fmt.Sprintf("%s: %s, %d lines", f.at(fn), fn.Name.Name, n))
				}
			}
		}
	}
	for dir := range packages {
		if !documented[dir] {
			t.Errorf("%s: no package comment", dir)
		}
	}
	if 100*len(long) > longPercent*total {
		t.Errorf("%d of %d functions are longer than %d lines, at most %d %% may be:\n%s",
			len(long), total, longFunc, longPercent, strings.Join(long, "\n"))
	}
}

func TestStyleCanFail(t *testing.T) {
	t.Chdir(root)
	tall := func(n int) string { return "package a\nfunc f() {" + strings.Repeat("\n", n-1) + "}" }
	for _, c := range []struct {
		name, src string
		bad       int
	}{
		{"a/a.go", tall(maxFunc), 0},
		{"a/a.go", tall(maxFunc + 1), 1},
		{"a/a.go", "package a\n" + strings.Repeat("\n", maxFile), 1},
		{"a/a.go", "// Code generated by x. DO NOT EDIT.\n\npackage a\n" + strings.Repeat("\n", maxFile), 0},
		{"a/a.go", `package a; import "os"; func f() { os.Exit(1) }`, 1},
		{"cmd/a/a.go", `package main; import "os"; func f() { os.Exit(1) }`, 0},
		{"a/a_test.go", `package a; import "time"; func f() { time.Sleep(1) }`, 1},
		{"a/a_test.go", `package a; func f() { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`, 0},
		{"a/a_test.go", `package a; func f() { synctest.Wait(); time.Sleep(1) }; func g() { time.Sleep(1) }`, 1},
		{"a/a_test.go", `package a; func f() { testkit.Eventually(t, 5*time.Second, "x", g) }`, 1},
		{"a/a_test.go", `package a; func f() { testkit.Eventually(t, 3*time.Minute, "x", g); testkit.Eventually(t, patience, "x", g) }`, 0},
		{"a/a.go", "package a\n// F does.\nfunc F() {}\n// The T is.\ntype T int\n// G does.\nfunc (T) G() {}\nfunc (T) Error() {}", 0},
		{"a/a.go", "package a\n// Does.\nfunc F() {}\ntype T int\nfunc (*T) G() {}\nfunc (*T) g() {}", 3},
		{"a/a.go", "package a\n// Fs does.\nfunc F() {}", 1},
		{"a/a.go", "package a\ntype t int\nfunc (t) G() {}", 0},
		{"a/a.go", "package a\n// " + strings.Repeat("is ", 29) + "1\n//\t" + strings.Repeat("is ", 40) + "\nvar a int // " + strings.Repeat("is ", 40), 1},
		{"a/a.go", "package a\n// " + strings.Repeat("is ", 29) + "\n// https://" + strings.Repeat("a", 90), 0},
		{"a/a.go", "package a\n// Kinds of things.\nconst (\nA = 1\nB = 2)\nconst (\nC = 1 // bytes\nD = 2)\nconst E = 1", 2},
	} {
		if bad := checkStyle(mustParse(t, c.name, c.src)); len(bad) != c.bad {
			t.Errorf("%s with %q: complaints %q, want %d", c.name, c.src, bad, c.bad)
		}
	}
}

func TestLinesOfFunction(t *testing.T) {
	t.Chdir(root)
	f := mustParse(t, "a/a.go", "package a\n\n// F is.\nfunc F() {\n\treturn\n}\n")
	if n := f.lines(f.ast.Decls[0]); n != 3 {
		t.Errorf("a function of 3 lines below its comment has %d", n)
	}
}
