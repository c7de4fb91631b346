package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"tether/agent/config"
	"tether/internal/testkit"
)

// A rule about a directory that is a link applies to its target, by whichever path one gets there.
func TestLendRulesFollowLinks(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(home, "data", "secret")
	if err := os.MkdirAll(filepath.Join(real, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(home, "secret")); err != nil {
		t.Fatal(err)
	}
	l := config.Lend{Default: config.LendYes, Rules: []config.LendRule{{Effect: config.LendNever, Directories: []string{"~/secret", "~/missing"}}}}
	for dir, want := range map[string]string{
		real: config.LendNever, filepath.Join(real, "deep"): config.LendNever, filepath.Join(home, "secret"): config.LendNever,
		filepath.Join(home, "data"): config.LendYes, filepath.Join(home, "missing"): config.LendNever,
	} {
		if got := l.Effect(config.Lending{Dirs: []string{dir}}, home); got != want {
			t.Errorf("in %s it is %s, want %s", dir, got, want)
		}
	}
}

// Where the disk takes names of another case for the same, so do rules.
func TestLendRulesKnowADirectoryInAnotherCase(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "Private", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := config.LendNever
	if _, err := os.Stat(filepath.Join(home, "pRIVATE")); err != nil {
		want = config.LendYes // it is another directory
	}
	l := config.Lend{Default: config.LendYes, Rules: []config.LendRule{{Effect: config.LendNever, Directories: []string{"~/pRIVATE"}}}}
	for _, dir := range []string{"Private", filepath.Join("Private", "deep")} {
		if got := l.Effect(config.Lending{Dirs: []string{filepath.Join(home, dir)}}, home); got != want {
			t.Errorf("in %s it is %s, want %s", dir, got, want)
		}
	}
}
