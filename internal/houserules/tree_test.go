// Package houserules holds the tests of the project as a whole: which package may import
// which, where differences between systems may live, and the house rules that a tool can
// check. They read the source as text, so that they see the files of every system.
package houserules

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tether/internal/testkit/must"
)

// modulePath is the module's name in go.mod.
const modulePath = "tether"

type node = ast.Node

// file is one parsed Go file of the project.
type file struct {
	name string // slash-separated, from the root: "platform/pty/pty.go"
	fset *token.FileSet
	ast  *ast.File
	src  []byte
}

func (f *file) dir() string     { return path.Dir(f.name) }
func (f *file) isTest() bool    { return strings.HasSuffix(f.name, "_test.go") }
func (f *file) isCommand() bool { return f.ast.Name.Name == "main" }

// at returns a node's position as FILE:LINE:COLUMN.
func (f *file) at(n node) string { return f.fset.Position(n.Pos()).String() }

// imports calls yield with each import path and its node.
func (f *file) imports(yield func(importPath string, n node)) {
	for _, spec := range f.ast.Imports {
		importPath, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		yield(importPath, spec)
	}
}

// isSelector reports whether e is pkg.name, for a package imported under its own name.
func isSelector(e node, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// parseTree returns every Go file of the project except test data. All tests share the
// result, because parsing takes longer than all checks.
func parseTree(t *testing.T) []*file {
	t.Helper()
	return must.Get(parsedTree())(t)
}

// parsedTree parses the Go files below the current directory.
var parsedTree = sync.OnceValues(func() (files []*file, err error) {
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the test of another package has removed its file meanwhile
		}
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if base == "testdata" || base == "node_modules" || base != "." && base[0] == '.' || name == "bin" || name == "dist" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parseFile(filepath.ToSlash(name), src)
		files = append(files, f)
		return err
	})
	return files, err
})

func parseFile(name string, src []byte) (*file, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	return &file{name: name, fset: fset, ast: tree, src: src}, err
}

// mustParse is parseFile for the small sources in the tests of the checks themselves.
func mustParse(t *testing.T, name, src string) *file {
	t.Helper()
	return must.Get(parseFile(name, []byte(src)))(t)
}

// report fails the test with each complaint.
func report(t *testing.T, complaints []string) {
	t.Helper()
	for _, c := range complaints {
		t.Error(c)
	}
}
