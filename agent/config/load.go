package config

import (
	"errors"
	"io/fs"
	"path/filepath"

	"tether/platform/dirs"
	"tether/platform/secret"
)

// Path is where the file is; it need not be there.
func Path(d dirs.Dirs) string { return filepath.Join(d.Config, "config.toml") }

// Load reads the file. A missing one means the defaults. Errors: *Error for
// what it says, others for a file that cannot be read or that others may change.
func Load(path string) (Config, error) {
	data, err := secret.ReadOwned(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Default(), err
	}
	return Parse(path, data)
}
