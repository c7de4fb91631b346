package agent

import (
	"os"
	"strings"
)

// machineName is this machine's name for hosts, without the domain; "" if it has none.
func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	name, _, _ = strings.Cut(name, ".")
	return name
}
