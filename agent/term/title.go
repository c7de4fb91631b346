package term

import (
	"regexp"
	"strings"

	"tether/internal/clip"
)

// windowsPath is the form of an absolute path there.
var windowsPath = regexp.MustCompile(`^[A-Za-z]:\\`)

// titleOf is the title that text stands for. Windows names a console after the file of its program, and cmd.exe does between two
// commands, which says less than the terminal's own name.
func (o *origin) titleOf(text string) string {
	title := clip.Text(strings.ToValidUTF8(text, "\uFFFD"), maxTitle)
	if len(o.command) > 0 && windowsPath.MatchString(title) && programName(title) == programName(o.command[0]) {
		return o.name
	}
	return title
}

// programName is a program's name in lower case, without directory and .exe.
func programName(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}
