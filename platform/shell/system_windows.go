package shell

const foldNames = true

// onLine suppresses the commands that the registry wants run first (/d) and keeps quotes in the line unchanged (/s).
func onLine(line string) []string { return []string{"cmd.exe", "/d", "/s", "/c", line} }

// Editor is the editor that every system of this kind has.
const Editor = "notepad"
