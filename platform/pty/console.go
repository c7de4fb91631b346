package pty

import "fmt"

// Console describes this system's pseudo-terminals, for a person. The error is the reason
// why there are none: a Windows that is too old.
func Console() (string, error) { return systemConsole() }

// firstConPTY is the build of Windows 10 1809 and Server 2019, the first with
// pseudo-consoles.
const firstConPTY = 17763

// conPTY describes the console of a Windows of this version.
func conPTY(major, minor, build uint32, has, releases bool) (string, error) {
	version := fmt.Sprintf("Windows %d.%d.%d", major, minor, build)
	switch {
	case !has || build < firstConPTY:
		return "", fmt.Errorf("%s has no pseudo-consoles; Windows 10 1809 (build %d) or later is needed", version, firstConPTY)
	case releases:
		return "ConPTY of " + version + ", which closes itself", nil
	}
	return "ConPTY of " + version, nil
}
