package checkout

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"tether/platform/volume"
	"tether/vocab"
)

const (
	changesWithin = 2 * time.Second
	maxScans      = 2                      // at a time
	maxIndex      = 32 << 20               // bytes
	maxEntries    = 100_000                // files of a work tree with its submodules
	maxHashed     = 1 << 20                // bytes of a file that is hashed
	maxAllHashed  = 32 << 20               // bytes of all of them
	maxModules    = 4                      // submodules within submodules
	racyFor       = 100 * time.Millisecond // a file changed that shortly before the index may have changed again unnoticed
	maxConfig     = 64 << 10               // bytes
)

// Changes says whether files that git tracks differ from the commit that is checked out:
// in the work tree or staged. Files that git does not track do not count, as in git diff
// HEAD. It takes 2 s at most, and is ChangesUnknown if that was not enough, and if only
// git with its filters could tell.
func (f *Finder) Changes(dir string) vocab.Changes {
	f.start()
	f.mu.Lock()
	if f.scans >= maxScans {
		f.mu.Unlock()
		return vocab.ChangesUnknown
	}
	f.scans++
	f.mu.Unlock()
	answers := make(chan vocab.Changes, 1)
	go func() { // it ends when it has looked at all files, or time is over
		s := &scan{disk: f.disk, until: time.Now().Add(changesWithin), entries: maxEntries, bytes: maxAllHashed}
		answer := s.dir(dir)
		f.mu.Lock()
		f.scans--
		f.mu.Unlock()
		answers <- answer
	}()
	late := time.NewTimer(changesWithin)
	defer late.Stop()
	select {
	case answer := <-answers:
		return answer
	case <-late.C:
		return vocab.ChangesUnknown
	}
}

// scan is one search for changes, with what it may still use.
type scan struct {
	*disk
	until   time.Time
	entries int
	bytes   int64
}

func (s *scan) dir(dir string) vocab.Changes {
	p, err := s.locate(dir)
	if err != nil || p == nil {
		return vocab.ChangesUnknown
	}
	_, commit, err := s.head(p)
	if err != nil {
		return vocab.ChangesUnknown
	}
	return s.place(p, commit, maxModules)
}

// place compares the work tree with its index, and the index with the commit.
func (s *scan) place(p *place, commit string, depth int) vocab.Changes {
	w := &tree{scan: s, place: p, dirs: map[string]bool{}, staged: trees{size: len(commit) / 2}, depth: depth}
	data, err := within(s.disk, filepath.Join(p.git, "index"), func(f File, size int64) ([]byte, error) {
		info, err := f.Stat()
		if err != nil || size > maxIndex {
			return nil, errors.Join(err, errTooLarge)
		}
		w.indexed = info.ModTime()
		return io.ReadAll(io.NewSectionReader(f, 0, size))
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) && commit == "":
		return vocab.ChangesNo
	case errors.Is(err, fs.ErrNotExist):
		return vocab.ChangesYes // all files are staged as deleted
	case err != nil:
		return vocab.ChangesUnknown
	}
	if commit == "" { // every file is new; how long hashes are is not known
		if x := openIndex(data, sha1.Size); x.bad || x.left == 0 {
			return changesOf(x.bad, false)
		}
		return vocab.ChangesYes
	}
	if !w.settings() {
		return vocab.ChangesUnknown
	}
	x := openIndex(data, w.staged.size)
	answer := w.files(x)
	if answer == vocab.ChangesYes {
		return answer
	}
	head, err := s.treeOf(p, commit)
	switch {
	case err != nil || head == nil || x.bad || x.left > 0:
		return vocab.ChangesUnknown
	case !bytes.Equal(head, w.staged.root()):
		return vocab.ChangesYes
	}
	return answer
}

func changesOf(unsure, yes bool) vocab.Changes {
	switch {
	case unsure:
		return vocab.ChangesUnknown
	case yes:
		return vocab.ChangesYes
	}
	return vocab.ChangesNo
}

// tree is the search of one work tree.
type tree struct {
	*scan
	*place
	indexed  time.Time       // when the index was written
	dirs     map[string]bool // directories of the work tree: whether they are there and no links
	staged   trees           // of the index
	depth    int             // of submodules that are searched
	modes    bool            // the file system has the executable bit
	links    bool            // the file system has links
	filtered bool            // a filter may stand between files and blobs
}

// settings reads what git's configuration says of the file system. It returns false if
// the work tree is elsewhere.
func (t *tree) settings() bool {
	text, err := t.read(filepath.Join(t.common, "config"), maxConfig)
	if err != nil {
		return err != errHangs
	}
	t.modes, t.links = true, true
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "filemode":
			t.modes = !strings.EqualFold(value, "false")
		case "symlinks":
			t.links = !strings.EqualFold(value, "false")
		case "worktree":
			if root, err := t.real(joined(t.git, value)); t.git == t.common && (err != nil || root != t.root) {
				return false
			}
		}
	}
	_, err = t.lstat(filepath.Join(t.common, "info", "attributes"))
	t.filtered = err == nil
	return true
}

// verdict is what is known of one file.
type verdict int

const (
	same verdict = iota
	different
	differs // its bytes do, but a filter may make them equal
	unsure
)

// files compares the files in the index with those of the work tree.
func (t *tree) files(x *index) vocab.Changes {
	doubt, suspect := false, false
	for {
		e, ok := x.next()
		if !ok {
			break
		}
		if t.entries--; t.entries < 0 || time.Now().After(t.until) {
			return vocab.ChangesUnknown
		}
		t.filtered = t.filtered || bytes.HasSuffix(e.name, []byte(".gitattributes"))
		t.staged.add(e.mode, e.name, e.hash)
		switch t.file(&e) {
		case different:
			return vocab.ChangesYes
		case differs:
			suspect = true
		case unsure:
			doubt = true
		}
	}
	return changesOf(x.bad || !x.understood() || doubt || suspect && t.filtered, suspect)
}

// file compares one file.
func (t *tree) file(e *entry) verdict {
	switch {
	case !safe(e.name):
		return unsure
	case e.conflict, e.intent:
		return different
	case e.skip:
		return same
	}
	name := filepath.FromSlash(string(e.name))
	if there, err := t.isDir(filepath.Dir(name)); err != nil {
		return unsure
	} else if !there {
		return different
	}
	path := filepath.Join(t.root, name)
	info, err := t.lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return different
	case err != nil:
		return unsure
	case e.mode&modeType == modeModule:
		return t.module(path, info, e)
	case e.mode&modeType == modeLink && info.Mode().IsRegular() && !t.links, e.mode&modeType == modeDir:
		return unsure
	case info.Mode().IsRegular() != (e.mode&modeType == modeFile), !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0:
		return different
	case t.modes && info.Mode().IsRegular() && (info.Mode()&0o100 != 0) != (e.mode&0o100 != 0):
		return different
	case e.size != 0 && uint32(info.Size()) != e.size:
		return different
	case e.size == 0 && info.Size() != 0, !t.untouched(info, e):
		return t.content(path, info, e)
	}
	return same
}

// isDir reports whether a directory of the work tree is there, and it and those above it
// are no links.
func (t *tree) isDir(name string) (bool, error) {
	if name == "." {
		return true, nil
	}
	if there, known := t.dirs[name]; known {
		return there, nil
	}
	there, err := t.isDir(filepath.Dir(name))
	if there && err == nil {
		var info fs.FileInfo
		if info, err = t.lstat(filepath.Join(t.root, name)); errors.Is(err, fs.ErrNotExist) {
			there, err = false, nil
		} else if err == nil {
			there = info.IsDir()
		}
	}
	if err == nil {
		t.dirs[name] = there
	}
	return there, err
}

// untouched reports whether the times of a file are those that git has noted, and old
// enough to be trusted.
func (t *tree) untouched(info fs.FileInfo, e *entry) bool {
	racy := racyFor
	if e.modified.Nanosecond() == 0 {
		racy = time.Second
	}
	changed, known := volume.Changed(info)
	return sameTime(info.ModTime(), e.modified) && (!known || sameTime(changed, e.changed)) && e.modified.Add(racy).Before(t.indexed)
}

// sameTime compares a time with one in an index, whose nanoseconds may be missing.
func sameTime(is, noted time.Time) bool {
	return is.Unix() == noted.Unix() && (noted.Nanosecond() == 0 || is.Nanosecond() == noted.Nanosecond())
}

// content compares the content of a file or link by its hash.
func (t *tree) content(path string, info fs.FileInfo, e *entry) verdict {
	if info.Size() > maxHashed || info.Size() > t.bytes {
		return unsure
	}
	t.bytes -= info.Size()
	var data []byte
	var err error
	if info.Mode().IsRegular() {
		data, err = t.read(path, maxHashed)
	} else {
		var target string
		target, err = ask(t.disk, path, func() (string, error) { return t.sys.Readlink(path) })
		data = []byte(filepath.ToSlash(target))
	}
	if err != nil {
		return unsure
	}
	switch {
	case bytes.Equal(hashOf("blob", data, t.staged.size), e.hash):
		return same
	case !info.Mode().IsRegular():
		return different
	case bytes.Contains(data, []byte("\r\n")): // git may have converted the ends of lines
		return unsure
	}
	return differs
}

// module compares a submodule: its commit, then its files.
func (t *tree) module(path string, info fs.FileInfo, e *entry) verdict {
	if !info.IsDir() {
		return different
	}
	p, err := t.at(path)
	switch {
	case err == nil && p == nil:
		return same // it is not checked out
	case err != nil || t.depth == 0:
		return unsure
	}
	_, commit, err := t.head(p)
	switch {
	case err != nil || commit == "":
		return unsure
	case commit != hex.EncodeToString(e.hash):
		return different
	}
	switch t.scan.place(p, commit, t.depth-1) {
	case vocab.ChangesYes:
		return different
	case vocab.ChangesNo:
		return same
	}
	return unsure
}
