package houserules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// servingPlaces are the packages that decode the requests of local clients, by a call of
// a function in decoders.
var (
	servingPlaces = []string{"agent/local", "agenttools"}
	decoders      = []string{"withBody", "decode", "decodeTyped", "Unmarshal"}
)

// handedOn are requests in the form in which one package hands them to another, among
// them what clients send as parameters of a URL.
var handedOn = map[string][]string{
	"agent/localclient": {"ReadOptions", "AttachOptions", "WaitOptions", "ProblemOptions"},
	"agenttools":        {"WaitRequest", "SpawnRequest"},
	"agent/start":       {"Request"},
}

// sendingPlace fills in requests. What it reads does not count for requests that are
// decoded.
const sendingPlace = "agent/localclient"

// unreadFields lists the exceptions, and why nothing is ignored.
var unreadFields = map[string]string{
	"tether/agenttools.waitArgs.Exit": "the exit ends every wait, and is what a wait without conditions waits for",
}

// typed are the project's packages with their types. Other packages are empty, and errors
// that follow from that are ignored, as are second declarations for other systems.
type typed struct {
	fset  *token.FileSet
	files map[string][]*ast.File // by directory, without tests
	info  types.Info
	done  map[string]*types.Package
}

// Import implements types.Importer.
func (t *typed) Import(name string) (*types.Package, error) {
	if done := t.done[name]; done != nil {
		return done, nil
	}
	dir, ours := strings.CutPrefix(name, modulePath+"/")
	if !ours {
		empty := types.NewPackage(name, path.Base(name))
		empty.MarkComplete()
		t.done[name] = empty
		return empty, nil
	}
	conf := types.Config{Importer: t, Error: func(error) {}, FakeImportC: true}
	done, _ := conf.Check(name, t.fset, t.files[dir], &t.info)
	t.done[name] = done
	return done, nil
}

// checkTypes checks all packages below agent, and agenttools.
func checkTypes(files []*file) (*typed, error) {
	t := &typed{fset: token.NewFileSet(), files: map[string][]*ast.File{}, done: map[string]*types.Package{}, info: types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
	}}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		again, err := parser.ParseFile(t.fset, f.name, f.src, parser.SkipObjectResolution) // into one set of positions
		if err != nil {
			return nil, err
		}
		t.files[f.dir()] = append(t.files[f.dir()], again)
	}
	for dir := range t.files {
		if strings.HasPrefix(dir, "agent") {
			if _, err := t.Import(modulePath + "/" + dir); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// decoded returns the types that a package decodes.
func (t *typed) decoded(dir string) (found []types.Type) {
	for _, f := range t.files[dir] {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			name := ""
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				name = fun.Name
			case *ast.SelectorExpr:
				name = fun.Sel.Name
			}
			if !slices.Contains(decoders, name) {
				return true
			}
			last := t.info.Types[call.Args[len(call.Args)-1]].Type
			if s, ok := last.(*types.Signature); ok && name == "withBody" {
				last = s.Params().At(s.Params().Len() - 1).Type()
			}
			if p, ok := last.(*types.Pointer); ok {
				last = p.Elem()
			}
			if last != nil {
				found = append(found, last)
			}
			return true
		})
	}
	return found
}

// fields adds the fields of a struct type, and of the structs in it, by name.
func fields(of types.Type, name string, to map[*types.Var]string) {
	switch u := of.Underlying().(type) {
	case *types.Slice:
		fields(u.Elem(), name, to)
	case *types.Pointer:
		fields(u.Elem(), name, to)
	case *types.Struct:
		for f := range u.Fields() {
			if to[f] == "" {
				to[f] = name + "." + f.Name()
				fields(f.Type(), to[f], to)
			}
		}
	}
}

// read returns the fields that the packages which fit read: those that stand anywhere but
// on the left of an assignment, and those of structs that are converted.
func (t *typed) read(fits func(dir string) bool) map[*types.Var]bool {
	read := map[*types.Var]bool{}
	for dir, files := range t.files {
		if !fits(dir) {
			continue
		}
		for _, f := range files {
			set := map[ast.Expr]bool{}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					for _, left := range n.Lhs {
						set[left] = n.Tok == token.ASSIGN
					}
				case *ast.CallExpr:
					if t.info.Types[n.Fun].IsType() && len(n.Args) == 1 && t.info.Types[n.Args[0]].Type != nil {
						of := map[*types.Var]string{}
						fields(t.info.Types[n.Args[0]].Type, "x", of)
						for f := range of {
							read[f] = true
						}
					}
				case *ast.SelectorExpr:
					if s := t.info.Selections[n]; s != nil && s.Kind() == types.FieldVal && !set[n] {
						read[s.Obj().(*types.Var)] = true
					}
				}
				return true
			})
		}
	}
	return read
}

// Nobody sends the daemon what it ignores: each field of each request is read. Parameters
// of URLs are refused if they are not, see agent/local EveryOptionIsSentAndRead.
func TestEveryFieldOfARequestIsRead(t *testing.T) {
	t.Chdir(root)
	all := must.Get(checkTypes(parseTree(t)))(t)
	bodies, options := map[*types.Var]string{}, map[*types.Var]string{}
	for _, dir := range servingPlaces {
		for _, of := range all.decoded(dir) {
			fields(of, of.String(), bodies)
		}
	}
	for dir, names := range handedOn {
		for _, name := range names {
			of := all.done[modulePath+"/"+dir].Scope().Lookup(name)
			if of == nil {
				t.Fatalf("%s has no %s", dir, name)
			}
			fields(of.Type(), of.Type().String(), options)
		}
	}
	if len(bodies) < 100 || len(options) < 40 {
		t.Errorf("%d fields of bodies and %d others were found: fewer than there are", len(bodies), len(options))
	}
	var unread []string
	for _, c := range []struct {
		of   map[*types.Var]string
		read map[*types.Var]bool
	}{
		{bodies, all.read(func(dir string) bool { return dir != sendingPlace && !strings.HasPrefix(dir, "cmd") })},
		{options, all.read(func(dir string) bool { return !strings.HasPrefix(dir, "cmd") })},
	} {
		for f, name := range c.of {
			if !c.read[f] && !f.Embedded() && unreadFields[name] == "" { // what is embedded is read by its fields' names
				unread = append(unread, fmt.Sprintf("%s is never read: the daemon ignores it", name))
			}
		}
	}
	slices.Sort(unread)
	report(t, unread)
}
