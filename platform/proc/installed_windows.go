package proc

import (
	"os"
	"path/filepath"
)

// foldsPaths says whether names of files are the same in any case.
const foldsPaths = true

func systemPlaces() []string {
	var all []string
	for _, name := range []string{"SystemRoot", "ProgramFiles", "ProgramFiles(x86)", "ProgramData"} {
		all = append(all, filepath.ToSlash(os.Getenv(name)))
	}
	return all
}

// ofAdministrator reports false: rights of files are not looked at.
func ofAdministrator(string) bool { return false }
