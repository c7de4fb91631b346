// Package config is the person's configuration file: one TOML file, read once when the
// daemon starts.
//
//	c, err := config.Load(config.Path(d)) // *Error: every problem with its line
//	pool := term.NewPool(term.Options{LogBytes: int(c.Terminals.LogBytes)})
//
// [Config] has one field per section, [Default] is the one place of defaults, and the
// fields' tags are the one place of names and ranges. Reading is strict: anything unknown
// is an error with its place, its text and the valid values, because a misspelt limit
// that is ignored limits nothing.
//
// A [Setting] from the environment or the command line overrides the file; [Key.Variable]
// and the key itself are their names there.
//
// A section's owner adds a struct to Config, its defaults to Default and its keys to
// docs/CONFIG.md; a test compares the three. Tags: toml is the key; range "a..b" are the
// bounds of an integer, a [Size] or a [Duration]; oneof lists the words that a string may
// be. Besides those types a field may be a bool, a string, a slice of strings, a struct
// (a table of its own) or a slice of structs (tables in double brackets). Rules that
// involve several keys belong in Config.relations.
package config
