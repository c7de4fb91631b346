package vocab

import (
	"strings"
	"unicode"
)

// Checkout is the git work tree that a directory is in.
type Checkout struct {
	// Repository is what all its work trees share: the directory of the main one, else
	// the git directory.
	Repository string `json:"repository"`
	Worktree   string `json:"worktree"`         // root of this work tree
	Branch     string `json:"branch,omitempty"` // absent if detached or unknown
	Commit     string `json:"commit,omitempty"` // whole; absent if there is none, or unknown
	// Changes is yes, no or unknown, if requested.
	Changes Changes `json:"changes,omitempty"`
}

// Changes says whether files of a work tree differ from its commit.
type Changes string

// The answers.
const (
	ChangesYes     Changes = "yes"
	ChangesNo      Changes = "no"
	ChangesUnknown Changes = "unknown"
)

// labelDigits is how many digits of a commit people see, as git shows them.
const labelDigits = 7

// Label is the checkout for a line of a list: feat/login@3f2a91c, the digits alone of a
// detached head, "unknown" if git's files were not understood.
func (c Checkout) Label() string {
	branch := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, c.Branch)
	commit := c.Commit[:min(len(c.Commit), labelDigits)]
	switch {
	case branch == "" && commit == "":
		return "unknown"
	case branch == "" || commit == "":
		return branch + commit
	}
	return branch + "@" + commit
}

// Show replaces the texts by what show makes of them.
func (c *Checkout) Show(show func(string) string) {
	c.Repository, c.Worktree, c.Branch = show(c.Repository), show(c.Worktree), show(c.Branch)
}
