//go:build linux || darwin

package proc

import "golang.org/x/sys/unix"

// foldsPaths says whether names of files are the same in any case.
const foldsPaths = false

func systemPlaces() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/run/current-system", "/gnu/store", "/snap", "/app/bin", "/app/extra", "/var/lib/flatpak", "/var/lib/snapd",
		"/home/linuxbrew", "/package", "/command", "/System", "/Applications", "/Library"}
}

// ofAdministrator reports whether root alone can change a file.
func ofAdministrator(path string) bool {
	var stat unix.Stat_t
	return unix.Stat(path, &stat) == nil && stat.Uid == 0 && stat.Mode&0o022 == 0
}
