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

// Load reads the file, and then applies over, in which a later setting overrides an earlier one. A missing file means the defaults. Errors:
// *Error for faults of the contents, others for a file that cannot be read or that others may change.
func Load(path string, over ...Setting) (Config, error) {
	data, err := secret.ReadOwned(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Default(), err
	}
	return parse(path, data, over)
}
