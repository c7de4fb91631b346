package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"tether/internal/testkit/must"
)

var update = flag.Bool("update", false, "write docs/CLI.md anew")

// printed are the types that commands print with --json, by command. logs prints lines of
// its own.
var printed = map[string]string{
	"ls": "localapi.TerminalList", "commands": "localapi.CommandList", "problems": "localapi.ProblemList", "wait": "localapi.Waited", "ports": "localapi.Ports", "up": "localapi.DeclaredList",
	"down": "localapi.DeclaredList", "restart": "localapi.DeclaredList", "status": "localapi.Status", "host ls": "main.pairedList", "watch": "main.hostList",
	"approvals": "localapi.ApprovalList", "audit verify": "main.verified", "policy check": "main.checked", "token show": "localapi.NewToken", "token create": "localapi.NewToken",
	"token ls": "localapi.TokenList", "service status": "main.serviceJSON", "config view": "main.configuration", "env": "localapi.Environment",
	"doctor": "doctor.Examination", "runs": "localapi.RunList", "shares": "localapi.Shares", "whoami": "localapi.Whoami", "notify ls": "localapi.Notifications",
	"adopt": "localapi.PaneList", "diff": "localapi.Comparison", "fetch": "localapi.Fetched", "verdict": "localapi.VerdictList",
}

// jsonLines are the commands whose --json is not one document.
var jsonLines = []string{"logs", "audit", "events", "search"}

const schemaStart = "<!-- from here on written by the test: go test ./cmd/tether -run TestSchemas -update -->\n"

// Every command that prints JSON is described in docs/CLI.md, in the words of the code.
func TestSchemas(t *testing.T) {
	s := &schemas{types: map[string]*ast.StructType{}, embedded: map[string]int{}}
	for dir, name := range map[string]string{".": "main", "../../agent/localapi": "localapi", "../../vocab": "vocab", "../../agent/audit": "audit", "../../agent/policy": "policy", "internal/doctor": "doctor",
		"../../agent/verdict": "verdict", "../../problems": "problems"} {
		s.parse(t, dir, name)
	}
	there := commandsWithJSON(newRoot(newApp(os.Stdin, os.Stdout, os.Stderr)), "")
	for c := range printed {
		if !slices.Contains(there, c) {
			t.Errorf("there is no tether %s --json", c)
		}
	}
	for _, c := range there {
		if printed[c] == "" && !slices.Contains(jsonLines, c) {
			t.Errorf("tether %s --json prints what docs/CLI.md does not know", c)
		}
	}
	byType := map[string][]string{}
	for c, name := range printed {
		byType[name] = append(byType[name], "`tether "+c+"`")
	}
	write := func() string {
		var b strings.Builder
		for _, name := range slices.Sorted(keysOf(byType)) {
			slices.Sort(byType[name])
			fmt.Fprintf(&b, "\n### %s\n\n", strings.Join(byType[name], ", "))
			s.table(t, &b, name)
		}
		for i := 0; i < len(s.nested); i++ {
			fmt.Fprintf(&b, "\n### %s\n\n", s.shortName(s.nested[i]))
			s.table(t, &b, s.nested[i])
		}
		return b.String()
	}
	write() // learns which structs are used more than once: these are described once
	for name, n := range s.embedded {
		if n > 1 && !slices.Contains(s.nested, name) {
			s.nested = append(s.nested, name)
		}
	}
	s.shared = slices.Clone(s.nested)
	want := write()
	const path = "../../docs/CLI.md"
	page := must.Get(os.ReadFile(path))(t)
	head, got, ok := strings.Cut(string(page), schemaStart)
	if !ok {
		t.Fatalf("docs/CLI.md has no line %s", schemaStart)
	}
	if *update {
		must.Do(t, os.WriteFile(path, []byte(head+schemaStart+want), 0o644))
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/CLI.md (+) is not what the code says (-); go test ./cmd/tether -run TestSchemas -update:\n%s", diff)
	}
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// commandsWithJSON returns the commands below c that have a flag --json, without
// "tether".
func commandsWithJSON(c *cobra.Command, path string) (all []string) {
	if c.Flags().Lookup("json") != nil {
		all = append(all, path)
	}
	for _, sub := range c.Commands() {
		all = append(all, commandsWithJSON(sub, strings.TrimSpace(path+" "+sub.Name()))...)
	}
	return all
}

// schemas are the structs of some packages, as their source has them.
type schemas struct {
	types    map[string]*ast.StructType // "localapi.Terminal"
	nested   []string                   // to be shown yet, each once
	embedded map[string]int             // how many structs embed one
	shared   []string                   // with a description that others refer to
}

func (s *schemas) parse(t *testing.T, dir, name string) {
	t.Helper()
	notTests := func(i fs.FileInfo) bool { return !strings.HasSuffix(i.Name(), "_test.go") }
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasSuffix(e.Name(), ".go") || !notTests(info) {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), dir+"/"+e.Name(), nil, parser.ParseComments))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if st, ok := spec.Type.(*ast.StructType); ok {
					s.types[name+"."+spec.Name.Name] = st
				}
			}
			return true
		})
	}
}

// table writes the fields of a struct: of a small one on one line, otherwise those
// without a comment together.
func (s *schemas) table(t *testing.T, b *strings.Builder, name string) {
	t.Helper()
	all := s.fields(t, name, map[string]bool{})
	if len(all) > 8 {
		b.WriteString("- ")
	}
	for i, f := range all {
		text := f.name
		if f.words != "" {
			text += ": " + f.words
		}
		switch {
		case i == 0:
		case len(all) <= 8:
			b.WriteString("; ")
		case f.words == "" && all[i-1].words == "":
			b.WriteString(", ")
		default:
			b.WriteString("\n- ")
		}
		b.WriteString(text)
	}
	b.WriteString("\n")
}

// A field of a struct: its name and kind as the page has them, and what it means.
type field struct{ name, words string }

// fields are those of a struct but those that hide, which the struct around has.
func (s *schemas) fields(t *testing.T, name string, hide map[string]bool) (all []field) {
	t.Helper()
	st := s.types[name]
	if st == nil {
		t.Fatalf("no struct %s", name)
	}
	pkg, _, _ := strings.Cut(name, ".")
	own := maps.Clone(hide)
	for _, f := range st.Fields.List {
		key, _ := jsonKey(f)
		own[key] = true
	}
	for _, f := range st.Fields.List {
		if len(f.Names) == 0 { // its fields are as if they stood here
			inner := typeName(pkg, f.Type)
			s.embedded[inner]++
			if slices.Contains(s.shared, inner) {
				all = append(all, field{"the fields of " + s.link(inner), ""})
			} else {
				all = append(all, s.fields(t, inner, own)...)
			}
			continue
		}
		key, options := jsonKey(f)
		if key == "-" || key == "" || key == "schema_version" || hide[key] {
			continue
		}
		if key != strings.ToLower(key) {
			t.Errorf("%s: %q has capital letters; the JSON of commands has_names_like_this", name, key)
		}
		mark, words := "", strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
		if strings.HasPrefix(options, "omit") || strings.Contains(words, "absent") || strings.Contains(words, "only while") {
			mark = "?"
		}
		for _, verb := range []string{" is ", " are ", " says that "} { // "Since is when": the page has the name
			words = strings.TrimPrefix(words, f.Names[0].Name+verb)
		}
		kind := " " + s.kind(pkg, f.Type)
		if kind == " string" {
			kind = "" // the page says that
		}
		all = append(all, field{"`" + key + mark + "`" + kind, words})
	}
	return all
}

func jsonKey(f *ast.Field) (key, options string) {
	if f.Tag == nil {
		return "", ""
	}
	key, options, _ = strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
	return key, options
}

// kind describes a type in JSON, and queues structs for later.
func (s *schemas) kind(pkg string, e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return s.kind(pkg, x.X)
	case *ast.ArrayType:
		if typeName(pkg, x.Elt) == pkg+".byte" {
			return "string"
		}
		return s.kind(pkg, x.Elt) + "[]"
	case *ast.MapType:
		return "object of " + s.kind(pkg, x.Value)
	}
	name := typeName(pkg, e)
	if s.types[name] != nil {
		if !slices.Contains(s.nested, name) {
			s.nested = append(s.nested, name)
		}
		return s.link(name)
	}
	switch last := name[strings.LastIndexByte(name, '.')+1:]; last {
	case "int", "int32", "int64", "uint64", "float64":
		return "number"
	case "bool":
		return "boolean"
	case "Time":
		return "time"
	}
	return "string"
}

// link leads to the description of a type.
func (s *schemas) link(name string) string {
	short := s.shortName(name)
	return "[" + short + "](#" + strings.ToLower(short) + ")"
}

func typeName(pkg string, e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return pkg + "." + x.Name
	case *ast.SelectorExpr:
		return fmt.Sprint(x.X) + "." + x.Sel.Name
	}
	return ""
}

// shortName is a type's name as a heading, with its package if localapi has that name,
// too.
func (s *schemas) shortName(name string) string {
	pkg, short, _ := strings.Cut(name, ".")
	if pkg != "localapi" && s.types["localapi."+short] != nil {
		short = pkg + short
	}
	return strings.ToUpper(short[:1]) + short[1:]
}
