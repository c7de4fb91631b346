package houserules

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"tether/internal/testkit/must"
)

// glossaryMost is the maximum number of words in the glossary: nobody learns more.
const glossaryMost = 40

// glossaryItem is a word of the glossary, and the words that stand behind "not".
var glossaryItem = regexp.MustCompile(`^- \*\*([^*]+)\*\*: .*?(?:\(not: ([^()]*)\))?$`)

// glossary reads docs/GLOSSARY.md: words are its words, not are the single words behind
// "not".
func glossary(t *testing.T) (words, not []string) {
	t.Helper()
	p := must.Get(os.ReadFile("docs/GLOSSARY.md"))(t)
	for line := range strings.Lines(string(p)) {
		item := glossaryItem.FindStringSubmatch(strings.TrimSpace(line))
		if item == nil {
			continue
		}
		words = append(words, item[1])
		for word := range strings.SplitSeq(item[2], ",") {
			if word = strings.TrimSpace(word); word != "" && !strings.Contains(word, " ") {
				not = append(not, word)
			}
		}
	}
	return words, not
}

// The glossary defines each word once, and is short.
func TestGlossaryIsShort(t *testing.T) {
	t.Chdir(root)
	words, not := glossary(t)
	if len(words) == 0 || len(words) > glossaryMost {
		t.Errorf("%d words; 1 to %d are wanted", len(words), glossaryMost)
	}
	for i, word := range words {
		if slices.Contains(words[:i], word) || slices.Contains(not, word) {
			t.Errorf("%q stands there twice", word)
		}
	}
}

// No file, type, function or field outside of tests has a name with a word that stands
// behind "not".
func TestNamesAreOfTheGlossary(t *testing.T) {
	t.Chdir(root)
	_, not := glossary(t)
	for _, f := range parseTree(t) {
		if f.isTest() {
			continue
		}
		check := func(name string, where string) {
			for _, part := range nameParts(name) {
				if slices.Contains(not, part) || slices.Contains(not, strings.TrimSuffix(part, "s")) {
					t.Errorf("%s: %s: docs/GLOSSARY.md has another word for %q", where, name, part)
				}
			}
		}
		check(strings.TrimSuffix(path.Base(f.name), ".go"), f.name)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				check(n.Name.Name, f.at(n))
			case *ast.FuncDecl:
				check(n.Name.Name, f.at(n))
			case *ast.Field:
				for _, name := range n.Names {
					check(name.Name, f.at(n))
				}
			}
			return true
		})
	}
}

var separators = regexp.MustCompile(`[_.-]+`)

// nameParts returns the words of a name in lower case: "lastWord_x" has three.
func nameParts(name string) []string {
	var parts []string
	for _, piece := range separators.Split(name, -1) {
		begin := 0
		for i, c := range piece {
			if i > 0 && unicode.IsUpper(c) {
				parts = append(parts, strings.ToLower(piece[begin:i]))
				begin = i
			}
		}
		parts = append(parts, strings.ToLower(piece[begin:]))
	}
	return parts
}
