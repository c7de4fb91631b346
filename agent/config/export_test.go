package config

// For tests.
var (
	Distance = distance
	Nearest  = nearest
)
