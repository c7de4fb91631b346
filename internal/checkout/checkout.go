// Package checkout tells which branch of a git repository a directory shows. It reads a
// few small files of git's and runs no program.
//
//	var f checkout.Finder
//	if c, ok := f.Find("/home/me/src/app/web"); ok {
//		fmt.Println(c.Worktree, c.Label())
//	}
package checkout

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"tether/vocab"
)

// Checkout is the work tree that a directory is in.
type Checkout = vocab.Checkout

const (
	maxFile    = 4 << 10 // bytes of .git or HEAD
	maxDepth   = 64      // directories that are looked at
	maxLookups = 4       // under way
	within     = time.Second
)

// Finder looks for checkouts. A file system that does not answer delays few callers, and
// each by a second. The zero value is ready; it is safe for concurrent use.
type Finder struct{ lookups atomic.Int32 }

// Find returns the checkout that the absolute directory is in; ok is false if it is in
// none or does not exist, and if that is not known in time.
func (f *Finder) Find(dir string) (c Checkout, ok bool) {
	if f.lookups.Add(1) > maxLookups {
		f.lookups.Add(-1)
		return c, false
	}
	found := make(chan *Checkout, 1)
	go func() { // it ends when the file system has answered
		defer f.lookups.Add(-1)
		found <- find(dir)
	}()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case one := <-found:
		if one == nil {
			return c, false
		}
		return *one, true
	case <-late.C:
		return c, false
	}
}

func find(dir string) *Checkout {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || !filepath.IsAbs(dir) {
		return nil
	}
	dir = filepath.Clean(dir)
	for range maxDepth {
		if c := at(dir); c != nil {
			return c
		}
		above := filepath.Dir(dir)
		if above == dir {
			return nil
		}
		dir = above
	}
	return nil
}

// at returns the checkout whose root is dir, or nil.
func at(dir string) *Checkout {
	c := &Checkout{Worktree: dir}
	git := filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	switch {
	case err != nil:
		return nil
	case !info.IsDir():
		text, ok := strings.CutPrefix(read(git), "gitdir:") // gitrepository-layout(5)
		if !ok {
			return nil
		}
		if git = strings.TrimSpace(text); !filepath.IsAbs(git) {
			git = filepath.Join(dir, git)
		}
	}
	c.Repository = repository(git)
	head := strings.TrimSpace(read(filepath.Join(git, "HEAD")))
	if ref, ok := strings.CutPrefix(head, "ref:"); ok {
		c.Branch = strings.TrimPrefix(strings.TrimSpace(ref), "refs/heads/")
		return c
	}
	if len(head) < 40 || strings.Trim(head, "0123456789abcdef") != "" {
		return nil
	}
	c.Commit = head
	return c
}

// repository returns what the work tree with this git directory belongs to.
func repository(git string) string {
	common := git
	if name := strings.TrimSpace(read(filepath.Join(git, "commondir"))); name != "" {
		if common = name; !filepath.IsAbs(name) {
			common = filepath.Join(git, name)
		}
	}
	if filepath.Base(common) == ".git" {
		return filepath.Dir(common)
	}
	return common
}

// read returns a small text file, "" for anything else.
func read(name string) string {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil || !utf8.Valid(text) {
		return ""
	}
	return string(text)
}
