package checkout_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/checkout"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

const hash = "0123456789012345678901234567890123456789"

// A file system that hangs stops only who asks it, is left alone for a minute, and makes
// no list wait.
func TestAFileSystemThatHangs(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sys := &fake{files: map[string]string{
			"/src/.git/HEAD": "ref: refs/heads/main\n", "/net/app/.git/HEAD": "ref: refs/heads/away\n",
			"/tree/.git": "gitdir: /net/app/.git\n",
		}, links: map[string]string{"/link": "/net/app"}, hangs: map[string]chan struct{}{"/net": release}}
		f := checkout.Finder{System: sys}
		began := time.Now()
		known := f.Known("/src", "/net/app", "/tree", "/link")
		if took := time.Since(began); took > 5*time.Millisecond || len(known) != 1 || known["/src"].Branch != "main" {
			t.Errorf("after %v: %+v", took, known)
		}
		for _, dir := range []string{"/net/app", "/tree", "/link"} {
			c, ok := f.Find(dir)
			if !ok || c != (vocab.Checkout{}) || c.Label() != "unknown" {
				t.Errorf("%s: %+v, %t", dir, c, ok)
			}
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("they took %v", took)
		}
		asked := sys.questions("/net")
		for range 50 {
			time.Sleep(time.Second)
			began := time.Now()
			if c := f.Known("/src", "/net/app")["/src"]; c.Branch != "main" || time.Since(began) > 5*time.Millisecond {
				t.Fatalf("%+v after %v", c, time.Since(began))
			}
		}
		if now := sys.questions("/net"); now != asked || asked != 1 {
			t.Errorf("asked %d times, then %d within a minute", asked, now)
		}
		if got := f.Changes("/net/app"); got != vocab.ChangesUnknown {
			t.Error(got)
		}
		close(release)
		time.Sleep(time.Minute)
		if c, _ := f.Find("/net/app"); c.Branch != "away" {
			t.Errorf("when it answers again: %+v", c)
		}
	})
}

// A slow file system is not one that hangs, however many ask it.
func TestASlowFileSystem(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	synctest.Test(t, func(t *testing.T) {
		sys := &fake{files: map[string]string{}, slow: 20 * time.Millisecond}
		var dirs []string
		for i := range 100 {
			dirs = append(dirs, fmt.Sprintf("/src/%d", i))
			sys.files[dirs[i]+"/.git/HEAD"] = "ref: refs/heads/main\n"
		}
		f := checkout.Finder{System: sys}
		began := time.Now()
		if known := f.Known(dirs...); time.Since(began) > 5*time.Millisecond || len(known) > 0 {
			t.Errorf("%d after %v", len(known), time.Since(began))
		}
		time.Sleep(time.Minute)
		if known := f.Known(dirs...); len(known) != len(dirs) || known["/src/99"].Label() != "main" {
			t.Errorf("%d later", len(known))
		}
		time.Sleep(time.Minute) // until the last one has ended
	})
}

// Git's files may be hostile.
func TestHostileFiles(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	long := strings.Repeat("x", 1<<20)
	loop := map[string]string{"/a/.git/HEAD": "ref: refs/heads/a"}
	for i := range 10 {
		loop[fmt.Sprintf("/a/.git/refs/heads/%c", 'a'+i)] = fmt.Sprintf("ref: refs/heads/%c", 'a'+(i+1)%10)
	}
	unknown := "unknown"
	for name, c := range map[string]struct {
		files, links map[string]string
		pipes        string
		want         string // the label, "" for no checkout
	}{
		"nonsense":               {files: map[string]string{"/a/.git/HEAD": "nonsense"}, want: unknown},
		"empty":                  {files: map[string]string{"/a/.git/HEAD": ""}, want: unknown},
		"a huge HEAD":            {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/" + long}, want: unknown},
		"a huge ref":             {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/m", "/a/.git/refs/heads/m": hash + long}, want: "m"},
		"a long name":            {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/" + long[:5000]}, want: long[:255]},
		"control characters":     {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/m\x1b[2J\u202e\xff"}, want: "m\ufffd[2J\ufffd\ufffd"},
		"a ref outside":          {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/../../../../secret", "/secret": hash}, want: "../../../../secret"},
		"a link to a ref":        {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/m", "/secret": hash}, links: map[string]string{"/a/.git/refs/heads/m": "/secret"}, want: "m"},
		"HEAD as a link":         {files: map[string]string{"/a/.git/refs/heads/m": hash}, links: map[string]string{"/a/.git/HEAD": "refs/heads/m"}, want: "m@0123456"},
		"HEAD as a link outside": {files: map[string]string{"/secret": hash}, links: map[string]string{"/a/.git/HEAD": "/secret"}, want: unknown},
		"a loop of refs":         {files: loop, want: "e"},
		"a loop of links":        {links: map[string]string{"/a/.git": "/a/b", "/a/b": "/a/.git"}},
		"links that double":      {links: map[string]string{"/a/.git": strings.Repeat("/x/..", 200) + "/y", "/x": strings.Repeat("/z/..", 200) + "/y"}},
		"HEAD as a pipe":         {pipes: "/a/.git/HEAD", files: map[string]string{"/a/.git/config": ""}, want: unknown},
		".git as a pipe":         {pipes: "/a/.git", files: map[string]string{"/a/x": ""}},
		".git is itself":         {files: map[string]string{"/a/.git": "gitdir: ."}},
		".git names nothing":     {files: map[string]string{"/a/.git": "gitdir:"}},
		".git has no text":       {files: map[string]string{"/a/.git": "gitdir: /b\x00c"}},
		".git leads elsewhere":   {files: map[string]string{"/a/.git": "gitdir: ../b", "/b/HEAD": hash}, want: "0123456"},
		"commondir is nonsense":  {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/m", "/a/.git/commondir": long[:4000]}, want: "m"},
		"packed nonsense":        {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/m", "/a/.git/packed-refs": long + " refs/heads/m\nxyz refs/heads/m\n"}, want: "m"},
		"packed":                 {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/m", "/a/.git/packed-refs": "# x\n" + long + "\n" + hash + " refs/heads/m\n"}, want: "m@0123456"},
		"a reftable of nonsense": {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/.invalid", "/a/.git/reftable/tables.list": "../x\n"}, want: unknown},
		"no reftable":            {files: map[string]string{"/a/.git/HEAD": "ref: refs/heads/.invalid"}, want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if c.files == nil {
				c.files = map[string]string{"/a/x": ""}
			}
			f := checkout.Finder{System: &fake{files: c.files, links: c.links, pipes: map[string]bool{c.pipes: true}}}
			got, ok := f.Find("/a")
			if !ok && c.want == "" {
				return
			}
			if got.Label() != c.want {
				t.Errorf("%+v, %t, want %q", got, ok, c.want)
			}
			f.Changes("/a")
		})
	}
}

// Real files, too: those that nobody may read, and a directory in the place of one.
func TestUnreadableFiles(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	r := temp(t)
	r.write("none/.git/HEAD", "ref: refs/heads/main\n")
	r.write("dir/.git/HEAD/x", "")
	r.write("odd/.git/HEAD", "ref: refs/heads/main\n")
	r.write("odd/.git/packed-refs/x", "")
	must.Do(t, os.Chmod(filepath.Join(r.dir, "none/.git/HEAD"), 0))
	var f checkout.Finder
	for dir, want := range map[string]string{"none": "unknown", "dir": "unknown", "odd": "main"} {
		c, ok := f.Find(r.at(dir).dir)
		if os.Geteuid() == 0 && dir == "none" {
			want = "main"
		}
		if !ok || c.Label() != want || c.Worktree != r.at(dir).dir {
			t.Errorf("%s: %+v, %t", dir, c, ok)
		}
	}
	for _, dir := range []string{"", "app", strings.Repeat("/x", 5000), "/\x00"} {
		if c, ok := f.Find(dir); ok {
			t.Errorf("%.20q: %+v", dir, c)
		}
	}
}

// With thousands of work trees and refs, a list costs what it asks for.
func TestThousandsOfWorkTrees(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	synctest.Test(t, func(t *testing.T) {
		sys := &fake{files: map[string]string{"/app/.git/HEAD": "ref: refs/heads/main\n"}}
		var packed strings.Builder
		for i := range 5000 {
			git := fmt.Sprintf("/app/.git/worktrees/t%d", i)
			sys.files[git+"/HEAD"] = fmt.Sprintf("ref: refs/heads/b%d\n", i)
			sys.files[git+"/commondir"] = "../..\n"
			sys.files[fmt.Sprintf("/t%d/.git", i)] = "gitdir: " + git + "\n"
			fmt.Fprintf(&packed, "%040x refs/heads/b%d\n", i, i)
		}
		sys.files["/app/.git/packed-refs"] = packed.String()
		f := checkout.Finder{System: sys}
		var dirs []string
		for i := range 3000 {
			dirs = append(dirs, fmt.Sprintf("/t%d", i))
		}
		f.Known(dirs...)
		time.Sleep(time.Second)
		before := sys.questions("/")
		time.Sleep(time.Second)
		c := f.Known("/t4999")["/t4999"]
		if c.Repository != "/app" || c.Worktree != "/t4999" || c.Branch != "b4999" || c.Commit != fmt.Sprintf("%040x", 4999) {
			t.Errorf("%+v", c)
		}
		if asked := sys.questions("/") - before; asked > 40 {
			t.Errorf("one work tree took %d questions", asked)
		}
	})
}

// A command's checkout is the one at its start, also if it changes that at once.
func TestAsOf(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	r := temp(t)
	head := filepath.Join(r.dir, ".git", "HEAD")
	r.write(".git/HEAD", "ref: refs/heads/old\n")
	past := time.Now().Add(-time.Hour)
	must.Do(t, os.Chtimes(head, past, past))
	var f checkout.Finder
	ask := func(at time.Time) string {
		told := make(chan checkout.Checkout, 1)
		f.AsOf(r.dir, at, func(c checkout.Checkout) { told <- c })
		return (<-told).Label()
	}
	if got := ask(time.Now()); got != "old" {
		t.Errorf("%s", got)
	}
	at := time.Now().Add(-time.Minute)
	r.write(".git/HEAD", "ref: refs/heads/new\n")
	if got := ask(at); got != "old" {
		t.Errorf("changed after its start: %s", got)
	}
	testkit.Eventually(t, testkit.Patience, "the new branch", func() bool {
		c, _ := f.Find(r.dir)
		return c.Branch == "new"
	})
	if got := ask(time.Now().Add(time.Minute)); got != "new" {
		t.Errorf("changed before its start: %s", got)
	}
}
