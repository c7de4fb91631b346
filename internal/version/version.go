// Package version says which version the running program is.
package version

import "runtime/debug"

// released is set by the linker when a release is built.
var released string

// Text is the version for people and hosts: a release's, else the go command's version of the source, else 0.1.0-dev.
func Text() string {
	if released != "" {
		return released
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}
