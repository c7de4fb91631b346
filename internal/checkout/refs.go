package checkout

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

const (
	maxPacked  = 64 << 20 // bytes of packed-refs
	maxLine    = 8 << 10  // bytes of a line there that can be what is looked for
	maxSymrefs = 5        // as git follows them
	maxKnown   = 256      // packed refs that are remembered
)

// Errors of this package's own searches.
var (
	errBare   = errors.New("a git directory is no work tree")
	errNotGit = errors.New("the file is not as git writes it")
)

// reference is what a ref holds: a commit, or the name of another ref; neither if there
// is no such ref.
type reference struct{ commit, to string }

// parseRef decodes the text of HEAD or of a loose ref. ok is false if it is neither.
func parseRef(text string) (r reference, ok bool) {
	text = strings.TrimRight(text, " \t\r\n")
	if to, is := strings.CutPrefix(text, "ref:"); is {
		to = strings.TrimLeft(to, " \t")
		return reference{to: to}, to != ""
	}
	return reference{commit: text}, isHash(text)
}

func isHash(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// validRef reports whether git accepts the name below refs/, see
// git-check-ref-format(1). Others lead out of the repository, or to no file.
func validRef(name string) bool {
	if !strings.HasPrefix(name, "refs/") || strings.ContainsAny(name, " ~^:?*[\\\x7f") || strings.Contains(name, "@{") || strings.HasSuffix(name, ".") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") || strings.Contains(part, "..") {
			return false
		}
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
}

// head returns the ref that is checked out, "" for a detached head, and its commit, "" if
// that is not known or there is none yet.
func (d *disk) head(p *place) (ref, commit string, err error) {
	r, err := d.loose(p, p.git, "HEAD")
	if err != nil {
		return "", "", err
	}
	lookup := d.files
	if r.to == reftableHead {
		lookup = d.tables
		r, err = lookup(p, "HEAD")
	}
	for range maxSymrefs {
		if err != nil || r.to == "" {
			break
		}
		if ref = r.to; !validRef(ref) {
			return ref, "", nil
		}
		r, err = lookup(p, ref)
	}
	if err == errHangs || err != nil && ref == "" {
		return "", "", err
	}
	return ref, r.commit, nil // what else fails leaves the commit unknown
}

// loose returns the ref in the file name below dir.
func (d *disk) loose(p *place, dir, name string) (r reference, err error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if above := filepath.Dir(path); above != dir {
		if above, err = d.real(above); err != nil {
			return r, err
		}
		path = filepath.Join(above, filepath.Base(path))
	}
	info, err := d.lstat(path)
	if err != nil {
		return r, err
	}
	if info.IsDir() {
		return r, fs.ErrNotExist
	}
	p.saw(info)
	if info.Mode()&fs.ModeSymlink != 0 { // an old form of ref:
		to, err := ask(d, path, func() (string, error) { return d.sys.Readlink(path) })
		if err == nil && !strings.HasPrefix(to, "refs/") {
			err = errNotGit
		}
		return reference{to: to}, err
	}
	text, err := d.read(path, maxSmall)
	if err != nil {
		return r, err
	}
	r, ok := parseRef(string(text))
	if !ok {
		return r, errNotGit
	}
	return r, nil
}

// files looks a ref up among loose and packed ones.
func (d *disk) files(p *place, ref string) (reference, error) {
	dir := p.common
	for _, own := range []string{"refs/bisect/", "refs/worktree/", "refs/rewritten/"} {
		if strings.HasPrefix(ref, own) {
			dir = p.git
		}
	}
	r, err := d.loose(p, dir, ref)
	if errors.Is(err, fs.ErrNotExist) {
		return d.packed(p, ref)
	}
	return r, err
}

// packedRef is a packed ref as of one version of the file.
type packedRef struct {
	size    int64
	changed time.Time
	is      reference
}

// packed looks a ref up in packed-refs, which is read only if it has changed.
func (d *disk) packed(p *place, ref string) (reference, error) {
	path, key := filepath.Join(p.common, "packed-refs"), p.common+"\x00"+ref
	info, err := d.lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return reference{}, nil
	}
	if err != nil {
		return reference{}, err
	}
	p.saw(info)
	d.mu.Lock()
	known, ok := d.known[key]
	d.mu.Unlock()
	if ok && known.size == info.Size() && known.changed.Equal(info.ModTime()) {
		return known.is, nil
	}
	r, err := within(d, path, func(f File, size int64) (reference, error) {
		if size > maxPacked {
			return reference{}, errTooLarge
		}
		return searchPacked(io.NewSectionReader(f, 0, size), ref)
	})
	if err != nil || time.Since(info.ModTime()) < hangsAfter { // it may change again without a new time
		return r, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxKnown {
		clear(d.known)
	}
	d.known[key] = packedRef{info.Size(), info.ModTime(), r}
	return r, nil
}

// searchPacked finds a ref in the text of packed-refs.
func searchPacked(text io.Reader, ref string) (reference, error) {
	lines := bufio.NewReaderSize(text, maxLine)
	for whole := true; ; {
		line, err := lines.ReadSlice('\n')
		if hash, name, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(" ")); whole && err != bufio.ErrBufferFull && ok && string(name) == ref {
			if !isHash(string(hash)) {
				return reference{}, errNotGit
			}
			return reference{commit: string(hash)}, nil
		}
		whole = err != bufio.ErrBufferFull // else the next piece continues this line
		if err == io.EOF {
			return reference{}, nil
		}
		if err != nil && whole {
			return reference{}, err
		}
	}
}
