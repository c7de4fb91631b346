package shell

const foldNames = true

// onLine leaves out what the registry wants run first (/d) and keeps quotes in the line as they are (/s).
func onLine(line string) []string { return []string{"cmd.exe", "/d", "/s", "/c", line} }
