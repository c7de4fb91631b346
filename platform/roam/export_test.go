package roam

// For tests.
var (
	WatchSources = watch
	Ticks        = ticks
	GoTicks      = goTicks
	Asleep       = asleep
	Addresses    = addresses
	Tick         = tick
)
