package browser

// command returns a program that shows a URL. Unlike cmd's start, it does not parse the
// URL as a command line.
func command() []string { return []string{"rundll32", "url.dll,FileProtocolHandler"} }
