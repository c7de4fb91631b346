package config

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Local is the local door besides its socket: loopback TCP, for browsers and for programs
// that speak HTTP.
type Local struct {
	// Listen is the address, such as "127.0.0.1:0", where port 0 is any free one. ""
	// disables it.
	Listen string `toml:"listen"`
	// Origins are the pages that may come in with a token.
	Origins []string `toml:"origins"`
}

// problems returns the faults of the values.
func (l *Local) problems() []Problem {
	var all []Problem
	if l.Listen != "" {
		if text := listenProblem(l.Listen); text != "" {
			all = append(all, Problem{Key: "local.listen", Text: text})
		}
	}
	for _, o := range l.Origins {
		if text := originProblem(o); text != "" {
			all = append(all, Problem{Key: "local.origins", Text: shown(o) + " " + text})
		}
	}
	return all
}

func listenProblem(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return shown(address) + ` is no address and port, such as "127.0.0.1:0"`
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("port %s must be 0 to 65535, where 0 is any that is free", shown(port))
	} else if n > 0 && n < 1024 {
		return fmt.Sprintf("port %d is the system's: use 0 or one from 1024 on", n)
	}
	if ip := net.ParseIP(host); host != "localhost" && host != "127.0.0.1" && !ip.Equal(net.IPv6loopback) {
		return shown(address) + " is not this machine alone: use 127.0.0.1, [::1] or localhost"
	}
	return ""
}

// originProblem says why a browser never sends o as an Origin, or why that Origin does
// not identify a page.
func originProblem(o string) string {
	u, err := url.Parse(o)
	switch {
	case o == "*" || o == "null":
		return "would let every page in: list each origin"
	case err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(o, "?") || strings.HasSuffix(o, "#"):
		return `is no origin: want a scheme, a host and perhaps a port, such as "https://ui.example" or "http://localhost:5173"`
	case o != strings.ToLower(o):
		return "is never sent: browsers write origins in lower case"
	case u.Scheme == "http" && u.Port() == "80", u.Scheme == "https" && u.Port() == "443":
		return "is never sent: browsers leave the usual port out"
	case strings.Contains(u.Host, "*"):
		return "has a wildcard: list each origin"
	}
	return ""
}
