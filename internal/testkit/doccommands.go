package testkit

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// A DocCommand is a command line that the README or a page of docs/ shows.
type DocCommand struct {
	Page  string
	Text  string
	Args  []string // without the program; placeholders are left as they are
	Whole bool     // from a code block, which people type; a command in a sentence may lack its arguments
}

var (
	docSpan = regexp.MustCompile("`([^`\n]+)`")
	docStop = regexp.MustCompile(`^(#.*|[|<>&;].*|[0-9]?>.*)$`)
)

// DocCommands returns the command lines that begin with program, or with sudo and
// program, in the README and docs/ of the tree at root.
func DocCommands(t testing.TB, root, program string) (all []DocCommand) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		data := must.Get(os.ReadFile(page))(t)
		for i, part := range strings.Split(strings.ReplaceAll(string(data), "\\\n", " "), "```") {
			if i%2 == 1 {
				for line := range strings.Lines(part) {
					all = appendCommand(all, page, program, line, true)
				}
				continue
			}
			for _, span := range docSpan.FindAllStringSubmatch(part, -1) {
				all = appendCommand(all, page, program, strings.ReplaceAll(span[1], `\|`, "|"), false)
			}
		}
	}
	return all
}

// appendCommand appends the command of line, if line begins with program.
func appendCommand(all []DocCommand, page, program, line string, whole bool) []DocCommand {
	text := strings.TrimPrefix(strings.TrimSpace(line), "sudo ")
	rest, ok := strings.CutPrefix(text+" ", program+" ")
	if !ok {
		return all
	}
	rest, _, _ = strings.Cut(rest, "  ") // two blanks begin an explanation
	c := DocCommand{Page: page, Text: text, Whole: whole}
	for _, word := range strings.Fields(rest) {
		if docStop.MatchString(word) {
			break
		}
		c.Args = append(c.Args, strings.Trim(word, `'"`))
	}
	return append(all, c)
}
