package browser

// command shows a URL without parsing it as a command line, as cmd's start would.
func command() []string { return []string{"rundll32", "url.dll,FileProtocolHandler"} }
