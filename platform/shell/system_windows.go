package shell

const foldNames = true

// onLine skips the AutoRun commands of the registry (/d) and keeps quotes in the line
// unchanged (/s).
func onLine(line string) []string { return []string{"cmd.exe", "/d", "/s", "/c", line} }

// Editor is the editor that every Windows has.
const Editor = "notepad"
