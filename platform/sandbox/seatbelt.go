package sandbox

import (
	"slices"
	"strings"
)

// seatbelt returns the profile for sandbox-exec of macOS. The command writes only below
// granted directories, does not read secrets, and sends signals only to processes of the
// sandbox. It connects only to unix sockets that are granted. Programs outside can still
// be reached through launchd's services (mach-lookup).
func seatbelt(p Profile) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(allow default)\n")
	rule := func(what string, filters []string) {
		if len(filters) > 0 {
			b.WriteString("(" + what + "\n\t" + strings.Join(filters, "\n\t") + ")\n")
		}
	}
	subpaths := func(paths []string) []string {
		all := make([]string, 0, len(paths))
		for _, path := range paths {
			all = append(all, "(subpath "+schemeString(path)+")")
		}
		return all
	}
	b.WriteString("(deny file-write*)\n")
	rule("allow file-write*", append(subpaths(slices.Concat(p.Writable, p.Temporary)), `(regex #"^/dev/(null|zero|tty|ptmx|ttys[0-9]+|fd/.*)$")`))
	rule("deny file-read* file-write*", subpaths(slices.Concat(p.Hidden, Secrets(p.Home))))
	b.WriteString("(deny signal)\n(allow signal (target same-sandbox))\n(deny process-info* (target others))\n")
	if p.NoNetwork {
		b.WriteString("(deny network*)\n")
	}
	b.WriteString("(deny network-outbound (remote unix-socket))\n")
	rule("allow network*", unixSockets(slices.Concat(p.Sockets, p.Writable, p.Temporary)))
	return b.String()
}

func unixSockets(paths []string) []string {
	var all []string
	for _, path := range paths {
		all = append(all, "(local unix-socket (subpath "+schemeString(path)+"))", "(remote unix-socket (subpath "+schemeString(path)+"))")
	}
	return all
}

// schemeString returns s as a string of the profile's language.
func schemeString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
