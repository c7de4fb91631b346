//go:build !darwin && !windows

package browser

import (
	"os"
	"os/exec"
)

// command returns xdg-open, or nil without a desktop, where xdg-open would start a
// browser in the terminal.
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
