package config

// For tests.
var (
	Distance = distance
)

// Parse is parse without settings over the file.
func Parse(path string, data []byte) (Config, error) { return parse(path, data, nil) }
