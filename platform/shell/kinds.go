package shell

import "strings"

// windowsKinds are the shells that Windows includes or that people install there, in the
// order in which Login prefers them. Git's bash is last: everybody with git has it,
// wanted or not.
var windowsKinds = []string{"pwsh", "powershell", "cmd", "bash"}

// places returns the paths on Windows where the shell with this name may be, the
// preferred one first. git is the directory of Git for Windows, or "". places is a pure
// function, so that every system can test it.
func places(name string, getenv func(string) string, git string) []string {
	var found []string
	add := func(variable string, elements ...string) {
		if dir := getenv(variable); dir != "" {
			found = append(found, strings.TrimRight(dir, `\`)+`\`+strings.Join(elements, `\`))
		}
	}
	switch strings.TrimSuffix(strings.ToLower(name), ".exe") {
	case "pwsh": // 7 and newer: first the installer's, then those on PATH, which include the Microsoft Store's
		add("ProgramFiles", "PowerShell", "7", "pwsh.exe")
		add("ProgramW6432", "PowerShell", "7", "pwsh.exe")
		found = append(found, onPath(getenv("PATH"), "pwsh.exe")...)
		add("LOCALAPPDATA", "Microsoft", "WindowsApps", "pwsh.exe")
	case "powershell": // 5.1, a part of Windows
		add("SystemRoot", "System32", "WindowsPowerShell", "v1.0", "powershell.exe")
	case "cmd":
		if path := getenv("ComSpec"); path != "" {
			found = append(found, path)
		}
		add("SystemRoot", "System32", "cmd.exe")
	case "bash", "git-bash": // not System32's bash, which starts Linux and is first on PATH
		if git != "" {
			found = append(found, strings.TrimRight(git, `\`)+`\bin\bash.exe`)
		}
		add("ProgramFiles", "Git", "bin", "bash.exe")
		add("ProgramW6432", "Git", "bin", "bash.exe")
		add("LOCALAPPDATA", "Programs", "Git", "bin", "bash.exe")
		for _, exe := range onPath(getenv("PATH"), "git.exe") { // …\Git\cmd\git.exe
			if dir, ok := cutFoldSuffix(exe, `\cmd\git.exe`); ok {
				found = append(found, dir+`\bin\bash.exe`)
			}
		}
	}
	return found
}

// onPath returns the program's path in each absolute directory of a Windows PATH.
func onPath(list, program string) []string {
	var found []string
	for dir := range strings.SplitSeq(list, ";") {
		dir = strings.TrimRight(strings.Trim(dir, `"`), `\`)
		if len(dir) >= 2 && (dir[1] == ':' || strings.HasPrefix(dir, `\\`)) {
			found = append(found, dir+`\`+program)
		}
	}
	return found
}

func cutFoldSuffix(s, suffix string) (string, bool) {
	if n := len(s) - len(suffix); n >= 0 && strings.EqualFold(s[n:], suffix) {
		return s[:n], true
	}
	return s, false
}
