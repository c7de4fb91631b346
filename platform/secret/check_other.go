//go:build !linux && !darwin && !windows

package secret

import (
	"io/fs"
	"os"
)

// noWait has no counterpart here.
const noWait = 0

func makeDir(path string) error { return os.MkdirAll(path, 0o700) }

func openFile(path string, flags int) (*os.File, error) { return os.OpenFile(path, flags, 0o600) }

func openRead(path string) (*os.File, error) { return os.Open(path) }

func createTemp(dir, prefix string) (*os.File, error) { return os.CreateTemp(dir, prefix+"*") }

// check relies on the places that package dirs names: the user's profile is closed to others by inheritance.
func check(string, fs.FileInfo, string) error { return nil }

// checkOwned likewise.
func checkOwned(string, fs.FileInfo) error { return nil }

func replace(from, to string) error { return os.Rename(from, to) }

// syncDir does nothing: directories cannot be synced here, a rename is journaled.
func syncDir(string) error { return nil }
