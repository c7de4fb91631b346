package roam

// For tests.
var (
	WatchSources = watch
	Asleep       = asleep
	Addresses    = addresses
)
