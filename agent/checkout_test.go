package agent_test

import (
	"os"
	"path/filepath"
	"testing"

	"tether/agent"
	"tether/agent/config"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// Hosts are told of checkouts unless lend.checkout is off, and of none whose work tree or
// repository a rule never lends, under any of its names.
func TestCheckoutsThatHostsMayKnow(t *testing.T) {
	t.Parallel()
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, dir := range []string{"app", "login", "private/app"} {
		must.Do(t, os.MkdirAll(filepath.Join(top, dir), 0o700))
	}
	in := func(repository, worktree string) vocab.Checkout {
		return vocab.Checkout{Repository: filepath.Join(top, repository), Worktree: filepath.Join(top, worktree), Branch: "main"}
	}
	settings := config.Default()
	settings.Lend.Rules = []config.LendRule{
		{Effect: config.LendNever, Directories: []string{filepath.Join(top, "private")}, Owners: []string{"agent"}},
		{Effect: config.LendNever, Directories: []string{filepath.Join(top, "login")}, Hosts: []string{"other"}},
	}
	a := must.Get(agent.New(agent.Config{Settings: &settings}))(t)
	if a.TellsCheckout("lab", in("private/app", "login")) || a.TellsCheckout("lab", in("app", "private/app")) || a.TellsCheckout("other", in("app", "login")) {
		t.Error("a never directory is told")
	}
	testkit.Eventually(t, testkit.Patience, "others are told", func() bool { return a.TellsCheckout("lab", in("app", "login")) })
	if a.TellsCheckout("lab", vocab.Checkout{}) {
		t.Error("one that is not known is told")
	}
	settings.Lend.Checkout = false
	off := must.Get(agent.New(agent.Config{Settings: &settings}))(t)
	if off.TellsCheckout("lab", in("app", "app")) {
		t.Error("it is told although that is off")
	}
}
