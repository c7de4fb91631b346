package doctor

import (
	"os"
	"path/filepath"
)

// pagePath is the installed path of a page of docs/: where Linux packages put it, or beside the program, as archives and the installer for
// Windows do. If the page is in neither place, pagePath returns its path in the repository.
func pagePath(page string) string {
	self, err := os.Executable()
	if err != nil {
		return page
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	return pageIn(filepath.Dir(self), page)
}

// pageIn is pagePath for a program in the directory.
func pageIn(dir, page string) string {
	for _, path := range []string{filepath.Join(dir, "..", "share", "doc", "tether", filepath.FromSlash(page)), filepath.Join(dir, filepath.FromSlash(page))} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return page
}
