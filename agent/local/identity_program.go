package local

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tether/platform/proc"
)

// processName returns a name of a process for messages.
func processName(p proc.Ancestor) string {
	if len(p.Argv) == 0 {
		return fmt.Sprintf("process %d", p.Pid)
	}
	return fmt.Sprintf("process %d (%.40q)", p.Pid, program(p.Argv))
}

// program returns a program's name as the tables contain it: without its directory, the
// dash of a login shell, and the extension on Windows.
func program(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	name := argv[0]
	if first, _, ok := strings.Cut(name, " "); ok && !strings.ContainsAny(first, `/\`) { // a title that a program has given itself: "npm exec x"
		name = first
	}
	name = filepath.Base(strings.ReplaceAll(name, `\`, "/"))
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(name, ":"), "-"), ".exe"))
}

// exeName returns the name of the file that a process runs or, where that cannot be read,
// the name that it gives itself.
func exeName(p proc.Ancestor) string {
	if p.Exe == "" {
		return program(p.Argv)
	}
	return unwrapped(program([]string{p.Exe}))
}

// unwrapped returns the name of a program that Nix has renamed to start it by a script:
// .claude-wrapped.
func unwrapped(name string) string {
	if inner, ok := strings.CutSuffix(strings.TrimRight(name, "_"), "-wrapped"); ok && strings.HasPrefix(inner, ".") {
		return inner[1:]
	}
	return name
}

// namesOf returns the names of a program, the best one first: of the script that an
// interpreter or a shell runs, also without its extension, or else of its file. The list
// is never empty.
func namesOf(p proc.Ancestor) []string {
	script := scriptOf(p)
	switch {
	case script != "" && scriptName(script) != "":
		base := strings.ToLower(path.Base(filepath.ToSlash(script)))
		return slices.Compact([]string{base, strings.TrimSuffix(base, path.Ext(base)), scriptName(script)})
	case exeName(p) == "":
		return []string{fmt.Sprint(p.Pid)}
	case oneOf(scripted, exeName(p)) && len(p.Argv) == 1: // its arguments may be a title
		return slices.Compact([]string{program(p.Argv), exeName(p)})
	}
	return []string{exeName(p)}
}

// pathsOf returns the paths of a program's file and script, in lower case and with a
// slash before each.
func pathsOf(p proc.Ancestor) (all []string) {
	for _, file := range []string{p.Exe, scriptOf(p)} {
		if file = strings.ToLower(filepath.ToSlash(file)); strings.Contains(file, "/") {
			all = append(all, "/"+strings.TrimPrefix(file, "/"))
		}
	}
	return all
}

// scriptName returns the name of a script as the tables contain it.
func scriptName(script string) string {
	name := program([]string{script})
	for _, ext := range []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb", ".pl", ".sh", ".bash", ".cmd"} {
		name = strings.TrimSuffix(name, ext)
	}
	return unwrapped(strings.TrimSuffix(name, "-cli"))
}

// valued are options of interpreters whose value is the next argument, as far as it can
// be taken for a script. coded are those whose value is a program, so that there is no
// script.
var (
	valued = []string{"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "-W", "-X", "-I", "-o", "+o", "-O", "+O", "--rcfile", "--init-file", "--argv0"}
	coded  = []string{"-e", "--eval", "-p", "--print", "-c", "-pe"}
)

// scriptOf returns the script that an interpreter or a shell runs, or the program that
// the system's loader does, as the arguments have it; of Python's modules it returns the
// name. It returns "" for other programs, and for those that run a text or their input.
func scriptOf(p proc.Ancestor) string {
	name := exeName(p)
	if !oneOf(scripted, name) && !oneOf(shells, name) && !oneOf(loaders, name) || len(p.Argv) < 2 {
		return ""
	}
	for i := 1; i < len(p.Argv); i++ {
		arg := p.Argv[i]
		switch {
		case arg == "-m" && strings.HasPrefix(name, "py") && i+1 < len(p.Argv):
			module, _, _ := strings.Cut(p.Argv[i+1], ".")
			return module
		case slices.Contains(coded, arg), oneOf(shells, name) && strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "c"), arg == "-", arg == "-s":
			return ""
		case slices.Contains(valued, arg):
			i++
		case strings.HasPrefix(arg, "-"), arg == "":
		case i == 1 && (name == "bun" || name == "deno") && slices.Contains([]string{"run", "task", "x"}, arg):
			if next := p.Argv[len(p.Argv)-1]; i+1 == len(p.Argv) || !strings.ContainsAny(next, "./") {
				return ""
			}
		default:
			return arg
		}
	}
	return ""
}
