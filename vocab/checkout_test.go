package vocab_test

import (
	"strings"
	"testing"

	"tether/vocab"
)

func TestLabel(t *testing.T) {
	commit := "3f2a91c" + strings.Repeat("0", 33)
	for want, c := range map[string]vocab.Checkout{
		"feat/login@3f2a91c": {Branch: "feat/login", Commit: commit},
		"3f2a91c":            {Commit: commit},
		"main":               {Branch: "main"},
		"unknown":            {Worktree: "/x"},
		"a\ufffd[31m@3f2a":   {Branch: "a\x1b[31m", Commit: "3f2a"},
		"a\ufffdb":           {Branch: "a\u202eb"},
	} {
		if got := c.Label(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
