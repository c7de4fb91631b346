package limits_test

import (
	"errors"
	"path/filepath"
	"testing"

	"tether/platform/limits"
)

func TestFree(t *testing.T) {
	dir := t.TempDir()
	n, err := limits.Free(dir)
	if errors.Is(err, limits.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || n == 0 || n > 1<<60 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := limits.Free(filepath.Join(dir, "none")); err == nil {
		t.Errorf("a directory that is not there has %d bytes", n)
	}
}

func TestFiles(t *testing.T) {
	n, err := limits.Files()
	if errors.Is(err, limits.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil || n < 3 {
		t.Errorf("%d files, %v", n, err)
	}
}
