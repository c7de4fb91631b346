package config

// For tests.
var (
	Distance = distance
)
