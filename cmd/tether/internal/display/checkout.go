package display

import (
	"path/filepath"

	"tether/agent/localapi"
	"tether/vocab"
)

// Checkout returns the git checkout of a terminal in a list: feat/login@3f2a91c, with the
// repository's name if the list has several, and whether files have changed if that is
// known. Without a checkout it is "-".
func Checkout(t localapi.Terminal, list []localapi.Terminal) string {
	c := t.Checkout
	if c == nil {
		return "-"
	}
	label := Printable(c.Label(), 0)
	if c.Repository != "" && several(list, func(c *vocab.Checkout) string { return c.Repository }) {
		label = Printable(filepath.Base(c.Repository), maxRepository) + ": " + label
	}
	switch c.Changes {
	case vocab.ChangesYes:
		label += ", changed"
	case vocab.ChangesUnknown:
		label += ", changes unknown"
	}
	return label
}

const maxRepository = 24 // characters of a repository's name

// SeveralCheckouts reports whether running terminals of a list are in more than one
// checkout.
func SeveralCheckouts(list []localapi.Terminal) bool {
	return several(list, func(c *vocab.Checkout) string { return c.Worktree })
}

func several(list []localapi.Terminal, of func(*vocab.Checkout) string) bool {
	first := ""
	for _, t := range list {
		if t.Checkout == nil || t.Exit != nil || of(t.Checkout) == "" {
			continue
		}
		if first != "" && of(t.Checkout) != first {
			return true
		}
		first = of(t.Checkout)
	}
	return false
}
