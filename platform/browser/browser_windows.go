package browser

// command is what shows a URL without reading it as a command line, as cmd's start does.
func command() []string { return []string{"rundll32", "url.dll,FileProtocolHandler"} }
