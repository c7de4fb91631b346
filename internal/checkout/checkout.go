// Package checkout tells which repository, work tree, branch and commit of git a
// directory shows, and whether files there have changed. It reads git's own files and
// runs no program: git runs what a repository's configuration names. What it reads may be
// hostile.
//
//	var f checkout.Finder
//	c, ok := f.Find("/home/me/src/app/web")
//	if ok {
//		fmt.Println(c.Worktree, c.Label())
//	}
package checkout

import (
	"strings"
	"sync"
	"time"
	"unicode"

	"tether/internal/clip"
	"tether/platform/volume"
	"tether/vocab"
)

// Checkout is the work tree that a directory is in. One of which git's files are not
// understood, or not read in time, has no branch and no commit; on a file system that
// does not answer it is empty.
type Checkout = vocab.Checkout

const (
	freshFor   = 50 * time.Millisecond // how long what was found is not looked for again
	knownAfter = 4 * time.Millisecond  // the longest that Known takes
	findWithin = time.Second           // the longest that Find takes
	maxDirs    = 1024                  // directories that are remembered, and looked for at a time
	maxBranch  = 255                   // bytes of a branch's name
)

// Finder looks for checkouts and remembers them. A file system that does not answer
// delays few callers, and is left alone for a minute then. The zero value is ready; it is
// safe for concurrent use.
type Finder struct {
	// System replaces this machine's file systems; it is set before the first use.
	System System

	begin sync.Once
	disk  *disk
	mu    sync.Mutex
	dirs  map[string]*found
	scans int // for changes, under way
}

// found is what is known of a directory.
type found struct {
	is      *Checkout     // nil: it is in no work tree
	changed time.Time     // when git's files were last changed
	at      time.Time     // when it was found, zero for not yet
	used    time.Time     // when somebody asked
	looking chan struct{} // closed at the end of a search, nil if there is none
}

func (f *Finder) start() {
	f.begin.Do(func() {
		if f.System == nil {
			f.System = thisSystem{new(volume.Table)}
		}
		f.disk = &disk{sys: f.System, readers: map[string]*reader{}, known: map[string]packedRef{}}
		f.dirs = map[string]*found{}
	})
}

// look begins a search unless there is one, or its result is fresh. It returns a channel
// that is closed when the result is known, nil if it is or will not be.
func (f *Finder) look(dir string) <-chan struct{} {
	f.start()
	f.mu.Lock()
	defer f.mu.Unlock()
	one, now := f.dirs[dir], time.Now()
	if one == nil {
		if len(f.dirs) >= maxDirs && !f.evictLocked() {
			return nil
		}
		one = &found{}
		f.dirs[dir] = one
	}
	one.used = now
	if one.looking == nil && (one.at.IsZero() || now.Sub(one.at) >= freshFor) {
		one.looking = make(chan struct{})
		go f.search(dir, one)
	}
	return one.looking
}

// evictLocked forgets the directory that was not asked for the longest.
func (f *Finder) evictLocked() bool {
	oldest, at := "", time.Time{}
	for dir, one := range f.dirs {
		if one.looking == nil && (at.IsZero() || one.used.Before(at)) {
			oldest, at = dir, one.used
		}
	}
	delete(f.dirs, oldest)
	return !at.IsZero()
}

// search finds the checkout of a directory. It ends when the file systems have answered
// or count as hanging.
func (f *Finder) search(dir string, one *found) {
	is, changed := f.disk.checkout(dir)
	f.mu.Lock()
	defer f.mu.Unlock()
	one.is, one.changed, one.at = is, changed, time.Now()
	close(one.looking)
	one.looking = nil
}

// checkout returns the checkout of a directory, nil if there is none.
func (d *disk) checkout(dir string) (*Checkout, time.Time) {
	p, err := d.locate(dir)
	if err == errHangs {
		return &Checkout{}, time.Time{}
	}
	if p == nil {
		return nil, time.Time{}
	}
	c := &Checkout{Repository: p.repository(), Worktree: p.root}
	ref, commit, err := d.head(p)
	if err == errHangs {
		return &Checkout{}, time.Time{}
	}
	c.Branch, c.Commit = shownBranch(ref), commit
	return c, p.changed
}

// shownBranch returns the name of a ref for people. Git permits no control characters.
func shownBranch(ref string) string {
	return clip.Text(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.TrimPrefix(ref, "refs/heads/")), maxBranch)
}

// known returns what was last found of a directory.
func (f *Finder) known(dir string) (*Checkout, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.dirs[dir]; one != nil {
		return one.is, one.changed
	}
	return nil, time.Time{}
}

// Find returns the checkout that the absolute directory is in; ok is false if it is in
// none or does not exist, and if that is not known within a second.
func (f *Finder) Find(dir string) (c Checkout, ok bool) {
	await(findWithin, f.look(dir))
	is, _ := f.known(dir)
	if is == nil {
		return c, false
	}
	return *is, true
}

// Known returns the checkouts that the absolute directories are in, without those that
// are in none. It takes 4 ms at most: what was not read by then is as it was last known,
// or left out if it was never read.
func (f *Finder) Known(dirs ...string) map[string]Checkout {
	var looking []<-chan struct{}
	for _, dir := range dirs {
		looking = append(looking, f.look(dir))
	}
	await(knownAfter, looking...)
	all := map[string]Checkout{}
	for _, dir := range dirs {
		if is, _ := f.known(dir); is != nil {
			all[dir] = *is
		}
	}
	return all
}

// AsOf calls tell, from another goroutine, with the checkout that a directory was in at a
// time that has just passed, when what happens since may change it. It does not call tell
// if there is none or it is not known.
func (f *Finder) AsOf(dir string, at time.Time, tell func(Checkout)) {
	looking := f.look(dir)
	before, _ := f.known(dir)
	go func() {
		await(findWithin, looking)
		is, changed := f.known(dir)
		if !changed.Before(at) {
			is = before
		}
		if is != nil {
			tell(*is)
		}
	}()
}

// await waits until all channels that are not nil are closed, no longer than most.
func await(most time.Duration, all ...<-chan struct{}) {
	late := time.NewTimer(most)
	defer late.Stop()
	for _, one := range all {
		if one == nil {
			continue
		}
		select {
		case <-one:
		case <-late.C:
			return
		}
	}
}
