//go:build linux || darwin

package shell

import (
	"os"
	"strings"
)

const foldNames = false

func onLine(line string) []string { return []string{"/bin/sh", "-c", line} }

// listed reports whether /etc/shells, which only the administrator can change, contains
// the path.
func listed(path string) bool {
	data, err := os.ReadFile("/etc/shells")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) == path {
			return true
		}
	}
	return false
}

// Editor is the editor that every Linux and macOS has.
const Editor = "vi"
