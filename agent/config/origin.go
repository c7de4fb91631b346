package config

import (
	"errors"
	"io/fs"

	"tether/platform/secret"
)

// Origins returns where the values come from that Load would return, by key; what
// is not in it has its default.
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
