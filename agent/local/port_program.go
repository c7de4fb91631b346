package local

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"tether/agent/adopt"
	"tether/internal/clip"
	"tether/platform/proc"
)

// What a list of ports says of a program.

// maxTitle bounds the words of a title that a program gives itself.
const maxTitle = 3

// programName returns what a program is, without directories and arguments: its name, and
// that of the script that an interpreter runs, as in node vite.
func programName(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	if first, _, title := strings.Cut(argv[0], " "); title && len(argv) == 1 && !strings.ContainsAny(first, `/\`) {
		words := strings.Fields(argv[0])
		if n := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, `/\=`) || strings.HasPrefix(w, "-") }); n > 0 {
			words = words[:n]
		}
		return words[:min(len(words), maxTitle)]
	}
	base := func(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
	script := scriptOf(proc.Ancestor{Argv: argv})
	if i := slices.Index(argv, "-m"); i > 0 && i+1 < len(argv) && strings.HasPrefix(argv[i+1], script+".") {
		script = argv[i+1] // all of the module's name
	}
	if script == "" {
		return []string{base(argv[0])}
	}
	return []string{base(argv[0]), base(script)}
}

// pane returns the pane that a process is in, as tether adopt takes it, "" if none is
// known.
func (o *outside) pane(line []proc.Ancestor) string {
	for _, a := range line {
		if name := o.panes[a.Pid]; name != "" {
			return name
		}
	}
	return tmuxPane(line)
}

// panesByPid returns the panes that can be adopted, by their first processes. Other
// programs answer it, so it is not for agents, which may ask often.
func (s *Server) panesByPid(ctx context.Context) map[int]string {
	if s.opts.Adopter == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, panesWithin)
	defer cancel()
	panes, _, _ := s.opts.Adopter.Panes(ctx) // of those that cannot be listed, the list says nothing
	all := map[int]string{}
	for _, p := range panes {
		if p.Pid > 1 && p.Why == "" {
			all[p.Pid] = p.Target.String()
		}
	}
	return all
}

// panesWithin bounds how long a list of ports waits for other programs.
const panesWithin = 2 * time.Second

// tmuxPane returns the pane as the process's environment has it, if its server is among
// the ancestors: what has left a pane keeps its variables.
func tmuxPane(line []proc.Ancestor) string {
	parts := strings.Split(line[0].Tmux, ",") // socket, process number, session
	if len(parts) < 3 || !adopt.IsTmuxPane(line[0].Pane) {
		return ""
	}
	socket := strings.Join(parts[:len(parts)-2], ",")
	server, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil || !slices.ContainsFunc(line[1:], func(a proc.Ancestor) bool { return a.Pid == server }) {
		return ""
	}
	target := adopt.Target{Program: "tmux", Pane: line[0].Pane}
	switch {
	case filepath.Base(socket) == "default":
	case filepath.IsAbs(socket) && isPlain(socket): // people paste the command that it becomes a part of
		target.Server = socket
	default:
		return ""
	}
	return target.String()
}

// jobOf returns the command to which a process belongs, as far as it is known how to give
// it again: what was typed at a shell, else the process's own arguments.
func jobOf(line []proc.Ancestor) []string {
	argv := line[0].Argv
	for _, a := range line {
		if a.Pid == line[0].Group && a.Pid != a.Session {
			argv = a.Argv
		}
	}
	if len(argv) != 1 {
		return argv
	}
	words := strings.Fields(argv[0])
	if len(words) > 1 && slices.ContainsFunc(words, func(w string) bool { return !isPlain(w) }) {
		return nil // a title, which is no command
	}
	return words
}

// isPlain reports whether a word is the same in every shell.
func isPlain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._/:@=+-", r)
	})
}

// Bounds of a program's arguments in a list.
const (
	maxShownArgs = 50
	maxShownArg  = 500 // bytes
)

// shownArgv returns as much of the arguments as a list shows.
func shownArgv(argv []string, show func(string) string) (out []string) {
	for _, arg := range argv[:min(len(argv), maxShownArgs)] {
		out = append(out, clip.Marked(show(strings.ToValidUTF8(arg, "\uFFFD")), maxShownArg))
	}
	return out
}

// homely writes a directory below the person's home as they do.
func homely(dir string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return dir
	}
	if rest, ok := strings.CutPrefix(dir, home); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		return "~" + rest
	}
	return dir
}
