package checkout

import (
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

const (
	maxSmall = 8 << 10 // bytes of .git, commondir, HEAD and a loose ref
	maxDepth = 64      // directories in which .git is looked for
)

// place is where git keeps the files of a work tree, see gitrepository-layout(5). Paths
// have no links.
type place struct {
	root   string // of the work tree
	git    string // what belongs to this work tree: HEAD, index
	common string // what all work trees of the repository share

	changed time.Time // when the newest of the files that were read was changed
}

func (p *place) saw(info fs.FileInfo) {
	if at := info.ModTime(); at.After(p.changed) {
		p.changed = at
	}
}

// repository is what Checkout.Repository says.
func (p *place) repository() string {
	if filepath.Base(p.common) == ".git" {
		return filepath.Dir(p.common)
	}
	return p.common
}

// locate returns the work tree that dir is in, nil if it is in none.
func (d *disk) locate(dir string) (*place, error) {
	dir, err := d.real(dir)
	if err != nil {
		return nil, err
	}
	if info, err := d.lstat(dir); err != nil || !info.IsDir() {
		return nil, err
	}
	for range maxDepth {
		p, err := d.at(dir)
		if p != nil || err != nil {
			return p, err
		}
		if above := filepath.Dir(dir); above != dir {
			dir = above
			continue
		}
		break
	}
	return nil, nil
}

// at returns the work tree whose root is dir, nil if it is none. The error is errHangs,
// or errBare in a git directory.
func (d *disk) at(dir string) (*place, error) {
	git := filepath.Join(dir, ".git")
	info, err := d.lstat(git)
	if err != nil {
		if err != errHangs && d.isGit(dir) {
			err = errBare
		}
		return nil, unless(err)
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if git, err = d.real(git); err == nil {
			info, err = d.lstat(git)
		}
		if err != nil {
			return nil, unless(err)
		}
	}
	if !info.IsDir() {
		text, err := d.read(git, maxSmall)
		if err != nil {
			return nil, unless(err)
		}
		if git, err = d.real(pathIn(string(text), dir)); err != nil {
			return nil, unless(err)
		}
	}
	if _, err := d.lstat(filepath.Join(git, "HEAD")); err != nil {
		return nil, unless(err)
	}
	p := &place{root: dir, git: git, common: git}
	text, err := d.read(filepath.Join(git, "commondir"), maxSmall)
	if err == nil {
		p.common, err = d.real(joined(git, strings.TrimSpace(string(text))))
	}
	if err != nil {
		p.common = git
	}
	return p, unless(err)
}

// isGit reports whether dir is itself a git directory, such as a bare repository, so that
// what is below it belongs to no work tree.
func (d *disk) isGit(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := d.lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// unless returns err only if it ends a search: other errors say that there is no
// repository in this place.
func unless(err error) error {
	if err == errHangs || err == errBare {
		return err
	}
	return nil
}

// pathIn returns the path that the text of a .git file names, "" if it is none.
func pathIn(text, dir string) string {
	name, ok := strings.CutPrefix(text, "gitdir:")
	if name = strings.Trim(name, " \r\n"); !ok || name == "" {
		return ""
	}
	return joined(dir, name)
}

func joined(dir, name string) string {
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return name
	}
	return dir + string(filepath.Separator) + name // real resolves .. after links
}
