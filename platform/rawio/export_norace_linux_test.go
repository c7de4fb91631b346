//go:build !race

package rawio

// Unnoted does nothing: there are no system calls for the race detector.
func Unnoted() {}
