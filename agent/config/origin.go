package config

import (
	"errors"
	"io/fs"

	"tether/platform/secret"
)

// Origins returns the sources of the values that Load would return, by key; a missing key has its default.
func Origins(path string, over ...Setting) (map[string]Source, error) {
	data, err := secret.ReadOwned(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	from := map[string]Source{}
	lines := positionsIn(data)
	for _, k := range Keys() {
		if lines[k.Name] > 0 {
			from[k.Name] = FromFile
		}
	}
	for _, s := range over {
		from[s.Key] = s.Source
	}
	return from, nil
}
