package checkout_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tether/internal/checkout"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// repo runs git in a directory.
type repo struct {
	t   *testing.T
	dir string
}

// git runs git without the person's configuration, and returns what it prints.
func (r repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func (r repo) try(args ...string) (string, error) {
	r.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		r.t.Skip("there is no git")
	}
	c := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "core.autocrlf=false"}, args...)...)
	c.Dir = r.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_OPTIONAL_LOCKS=0")
	out, err := c.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (r repo) write(name, text string) {
	r.t.Helper()
	name = filepath.Join(r.dir, filepath.FromSlash(name))
	must.Do(r.t, os.MkdirAll(filepath.Dir(name), 0o700))
	must.Do(r.t, os.WriteFile(name, []byte(text), 0o600))
}

// at returns the repository at a directory below this one's.
func (r repo) at(name string) repo { return repo{r.t, filepath.Join(r.dir, filepath.FromSlash(name))} }

// make makes a repository with a commit.
func (r repo) make(args ...string) repo {
	r.t.Helper()
	must.Do(r.t, os.MkdirAll(r.dir, 0o700))
	r.git(append([]string{"init", "-q", "-b", "main"}, args...)...)
	r.write("web/a.txt", "a\n")
	r.write("b.txt", "b\n")
	r.git("add", ".")
	r.git("commit", "-qm", "first")
	return r
}

func temp(t *testing.T) repo {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return repo{t, dir}
}

// want is git's own answer.
func (r repo) want() (c vocab.Checkout) {
	r.t.Helper()
	c.Worktree = filepath.FromSlash(r.git("rev-parse", "--show-toplevel"))
	common := filepath.FromSlash(r.git("rev-parse", "--path-format=absolute", "--git-common-dir"))
	if c.Repository = common; filepath.Base(common) == ".git" {
		c.Repository = filepath.Dir(common)
	}
	if ref, err := r.try("symbolic-ref", "-q", "HEAD"); err == nil {
		c.Branch = strings.TrimPrefix(ref, "refs/heads/")
	}
	if commit, err := r.try("rev-parse", "-q", "--verify", "HEAD"); err == nil {
		c.Commit = commit
	}
	return c
}

// What is found is what git says, in every form in which git keeps it.
func TestGitAgrees(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			top := temp(t)
			object := "--object-format=" + format
			app := top.at("app").make(object)
			app.git("branch", "feat/packed")
			app.git("branch", "other")
			app.git("worktree", "add", "-q", "-b", "feat/login", "../login")
			app.git("worktree", "add", "-q", "--detach", "../detached")
			app.git("pack-refs", "--all")
			app.git("worktree", "add", "-q", "../packed", "feat/packed")
			app.git("worktree", "add", "-q", "../symbolic", "other")
			top.at("symbolic").git("symbolic-ref", "refs/heads/alias", "refs/heads/other")
			top.at("symbolic").git("symbolic-ref", "HEAD", "refs/heads/alias")
			app.git("worktree", "add", "-q", "--detach", "../unborn")
			top.at("unborn").git("symbolic-ref", "HEAD", "refs/heads/unborn")
			top.git("clone", "-q", "--bare", "app", "bare.git")
			top.at("bare.git").git("worktree", "add", "-q", "../of-bare", "other")
			top.git("clone", "-q", "--separate-git-dir", "elsewhere", "app", "separate")
			super := top.at("super").make(object)
			super.git("submodule", "--quiet", "add", "../app", "lib/app")
			super.at("lib/app").git("worktree", "add", "-q", "../../../of-module")
			app.at("fresh").write("x", "")
			top.at("new").write("x", "")
			top.at("new").git("init", "-q", "-b", "début", object)
			var f checkout.Finder
			dirs := []string{"app", "app/web", "app/fresh", "login", "login/web", "detached", "packed", "symbolic", "unborn", "of-bare", "separate/web", "super", "super/lib/app/web", "of-module", "new"}
			for _, dir := range dirs {
				r := top.at(dir)
				got, ok := f.Find(r.dir)
				if want := r.want(); got != want || !ok {
					t.Errorf("%s: %+v, %t, git: %+v", dir, got, ok, want)
				}
			}
			app.git("commit", "-q", "--allow-empty", "-m", "second")
			if got, _ := f.Find(app.dir); got != app.want() {
				t.Errorf("after another commit: %+v, git: %+v", got, app.want())
			}
			for _, dir := range []string{"bare.git", "bare.git/refs", "app/.git/refs", "nowhere", "app/b.txt"} {
				if c, ok := f.Find(top.at(dir).dir); ok {
					t.Errorf("%s: %+v", dir, c)
				}
			}
		})
	}
}

// Changes are those of git status, but for files that git does not track.
func TestGitAgreesOnChanges(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "4"} {
			t.Run(format+"-"+version, func(t *testing.T) {
				t.Parallel()
				r := temp(t).at("app").make("--object-format=" + format)
				r.git("config", "index.version", version)
				for i := range 40 {
					r.write("src/deep/"+strings.Repeat("long", i)+"/file.go", strings.Repeat("x", i))
				}
				r.git("add", ".")
				r.git("update-index", "--index-version", version)
				var f checkout.Finder
				step := func(name string) {
					t.Helper()
					want := vocab.ChangesNo
					if status := r.git("status", "--porcelain", "--untracked-files=no"); status != "" {
						want = vocab.ChangesYes
					}
					if got := f.Changes(r.dir); got != want {
						t.Errorf("%s: %s, git: %s", name, got, want)
					}
				}
				step("staged files")
				r.git("commit", "-qm", "more")
				step("a commit")
				r.write("untracked", "")
				step("an untracked file")
				r.write("b.txt", "c\n")
				step("a file of the same size")
				r.write("b.txt", "longer\n")
				step("a longer file")
				r.git("add", "b.txt")
				step("that is staged")
				r.git("commit", "-qm", "longer")
				r.write("b.txt", "longer\n")
				step("a file written again")
				r.git("gc", "-q")
				step("packed objects")
				must.Do(t, os.Remove(filepath.Join(r.dir, "b.txt")))
				step("a deleted file")
				r.git("checkout", "-q", "b.txt")
				step("a restored file")
				r.git("rm", "-q", "--cached", "b.txt")
				step("a file removed from the index")
				r.git("reset", "-q")
				step("a reset")
				r.write("new", "x")
				r.git("add", "-N", "new")
				step("intent to add")
				r.git("rm", "-q", "--cached", "new")
				step("and no more")
				r.git("reset", "-q", "--hard")
				r.git("update-index", "--skip-worktree", "b.txt")
				r.write("b.txt", "hidden")
				step("a file that git skips")
				r.git("update-index", "--no-skip-worktree", "b.txt")
				step("and does not")
				r.git("reset", "-q", "--hard")
				r.git("checkout", "-q", "--orphan", "empty")
				step("an orphan")
				r.git("rm", "-rqf", ".")
				step("and empty")
			})
		}
	}
}

// A submodule has changed with its commit, and with its files.
func TestChangesInASubmodule(t *testing.T) {
	t.Parallel()
	top := temp(t)
	top.at("lib").make()
	super := top.at("super").make()
	super.git("submodule", "--quiet", "add", "../lib", "lib")
	super.git("commit", "-qm", "lib")
	var f checkout.Finder
	step := func(name string, want vocab.Changes) {
		t.Helper()
		if got := f.Changes(super.dir); got != want {
			t.Errorf("%s: %s, want %s; git: %q", name, got, want, super.git("status", "--porcelain"))
		}
	}
	step("as it was", vocab.ChangesNo)
	super.at("lib").write("b.txt", "other")
	step("a changed file", vocab.ChangesYes)
	super.at("lib").git("commit", "-qam", "other")
	step("another commit", vocab.ChangesYes)
	super.git("commit", "-qam", "it")
	step("which is committed", vocab.ChangesNo)
	top.git("clone", "-q", "super", "copy")
	if got := f.Changes(top.at("copy").dir); got != vocab.ChangesNo {
		t.Errorf("a submodule that is not checked out: %s", got)
	}
}

// With filters only git can tell whether content differs.
func TestChangesBehindFilters(t *testing.T) {
	t.Parallel()
	r := temp(t).at("app").make()
	r.write(".gitattributes", "*.txt filter=some\n")
	r.git("add", ".")
	r.git("commit", "-qm", "filter")
	marker := filepath.Join(t.TempDir(), "ran")
	r.git("config", "filter.some.clean", "touch "+marker+"; cat")
	r.git("config", "core.fsmonitor", "touch "+marker)
	var f checkout.Finder
	if got := f.Changes(r.dir); got != vocab.ChangesNo {
		t.Errorf("as it was: %s", got)
	}
	r.write("b.txt", "c\n")
	if got := f.Changes(r.dir); got != vocab.ChangesUnknown {
		t.Errorf("with the same size: %s", got)
	}
	r.write("b.txt", "longer\n")
	if got := f.Changes(r.dir); got != vocab.ChangesYes {
		t.Errorf("with another size: %s", got)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of the repository's configuration has run")
	}
}

// Commits are those of git log, loose, packed, and packed as differences.
func TestGitAgreesOnCommits(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			r := temp(t).at("app").make("--object-format=" + format)
			long := strings.Repeat("A long message, which the next commit has, too, so that git stores the difference.\n", 20)
			for i := range 12 {
				r.git("commit", "-q", "--allow-empty", "-m", fmt.Sprint("step ", i, "\n\n", long))
			}
			r.git("checkout", "-q", "-b", "side", "HEAD~4")
			r.git("commit", "-q", "--allow-empty", "-m", "side")
			r.git("merge", "-q", "--no-ff", "-m", "merge", "-")
			agrees := func(how string) {
				t.Helper()
				var f checkout.Finder
				g := f.Graph(r.at("web").dir)
				if g == nil {
					t.Fatal("there is no repository")
				}
				for line := range strings.Lines(r.git("log", "--format=%H %ct %P")) {
					want := strings.Fields(line)
					parents, at, ok := g.Commit(want[0])
					if got := append([]string{want[0], fmt.Sprint(at)}, parents...); !ok || !slices.Equal(got, want) {
						t.Errorf("%s: %v, %t, git: %v", how, got, ok, want)
					}
				}
				if _, _, ok := g.Commit(strings.Repeat("0", len(r.git("rev-parse", "HEAD")))); ok {
					t.Errorf("%s: a commit that is not there", how)
				}
				if _, _, ok := g.Commit(r.git("rev-parse", "HEAD^{tree}")); ok {
					t.Errorf("%s: a tree", how)
				}
			}
			agrees("loose")
			r.git("repack", "-qadf")
			r.git("prune-packed")
			if pack := must.Get(filepath.Glob(filepath.Join(r.dir, ".git/objects/pack/*.idx")))(t); !regexp.MustCompile(`commit \d+ \d+ \d+ \d+ \w`).MatchString(r.git("verify-pack", "-v", pack[0])) {
				t.Error("no commit is stored as a difference")
			}
			agrees("packed")
		})
	}
}
