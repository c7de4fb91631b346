package checkout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/checkout"
	"tether/internal/testkit/must"
)

func TestFind(t *testing.T) {
	top := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(top, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	}
	hash := strings.Repeat("0123456789", 4)
	write("app/.git/HEAD", "ref: refs/heads/fix/a-b\n")
	write("app/web/src/x", "")
	write("app/.git/worktrees/two/HEAD", "ref: refs/heads/two\n")
	write("app/.git/worktrees/two/commondir", "../..\n")
	write("two/.git", "gitdir: "+filepath.Join(top, "app", ".git", "worktrees", "two")+"\n")
	write("app/lib/.git", "gitdir: ../.git/modules/lib")
	write("app/.git/modules/lib/HEAD", hash+"\n")
	write("alone/.git/HEAD", hash)
	write("bad/.git/HEAD", "nonsense")
	write("large/.git/HEAD", "ref: refs/heads/"+strings.Repeat("x", 8<<10))
	write("odd/.git", "gitdir: \xff")
	write("gone/.git", "gitdir: /nowhere")
	var f checkout.Finder
	for dir, want := range map[string]checkout.Checkout{
		"app": {Repository: "app", Worktree: "app", Branch: "fix/a-b"}, "app/web/src": {Repository: "app", Worktree: "app", Branch: "fix/a-b"}, "app/nowhere": {}, "app/web/src/x": {},
		"two": {Repository: "app", Worktree: "two", Branch: "two"}, "app/lib": {Repository: "app/.git/modules/lib", Worktree: "app/lib", Commit: hash}, "alone": {Repository: "alone", Worktree: "alone", Commit: hash},
		"bad": {}, "large": {}, "odd": {}, "gone": {}, ".": {},
	} {
		got, ok := f.Find(filepath.Join(top, filepath.FromSlash(dir)))
		if want.Worktree != "" {
			want.Repository = filepath.Join(top, filepath.FromSlash(want.Repository))
			want.Worktree = filepath.Join(top, filepath.FromSlash(want.Worktree))
		} else if ok && !strings.HasPrefix(got.Worktree, top) {
			continue // the temporary directory itself is in a checkout
		}
		if got != want || ok != (want.Worktree != "") {
			t.Errorf("%s: %+v, %t; want %+v", dir, got, ok, want)
		}
	}
	for _, dir := range []string{"", "app", strings.Repeat("/x", 5000)} {
		if got, ok := f.Find(dir); ok {
			t.Errorf("%.20q: %+v", dir, got)
		}
	}
}
