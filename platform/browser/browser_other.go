//go:build !darwin && !windows

package browser

import (
	"os"
	"os/exec"
)

// command is xdg-open where a desktop is there; without one it would start a browser in the terminal.
func command() []string {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	path, err := exec.LookPath("xdg-open")
	if err != nil {
		return nil
	}
	return []string{path}
}
