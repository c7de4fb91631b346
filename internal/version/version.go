// Package version returns the version of the running program.
package version

import "runtime/debug"

// released is set by the linker when a release is built.
var released string

// Text returns the version for people and hosts: the version of the release, else the
// version that the go command has recorded for the source, else 0.1.0-dev.
func Text() string {
	if released != "" {
		return released
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}
