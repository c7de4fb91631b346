package main

import (
	"bytes"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"tether/agent/redact"
)

// home is the directory that recordings name in place of the one in which the tool ran.
// The project is home + "/app".
const home = "/home/dev"

// neutral are the pairs of what must not be in a recording, and what is there instead.
func neutral(root string) (pairs [][2]string) {
	pairs = append(pairs, [2]string{root, home}, [2]string{strings.TrimPrefix(root, "/"), strings.TrimPrefix(home, "/")})
	if above := filepath.Dir(filepath.Dir(root)); len(above) > 1 { // of a path that a tool has cut off
		pairs = append(pairs, [2]string{above + "/", "/home/"})
	}
	if name, err := os.Hostname(); err == nil && len(name) > 3 && name != "localhost" {
		pairs = append(pairs, [2]string{name, "dev"})
	}
	if u, err := user.Current(); err == nil && len(u.Username) > 4 {
		pairs = append(pairs, [2]string{u.Username, "dev"})
	}
	addrs, _ := net.InterfaceAddrs() //nolint:errcheck // without addresses none is printed
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() {
			pairs = append(pairs, [2]string{n.IP.String(), "192.0.2.1"})
		}
	}
	return pairs
}

// masked replaces the pairs, and masks secrets as for hosts.
func masked(rules *redact.Rules, pairs [][2]string, out []byte) []byte {
	for _, p := range pairs {
		out = bytes.ReplaceAll(out, []byte(p[0]), []byte(p[1]))
	}
	out = bytes.ToValidUTF8(out, []byte("?"))
	f := redact.NewFilter(rules, 0)
	f.Feed(out)
	f.Flush()
	secrets, _ := f.Take()
	for _, m := range secrets {
		m.Put(out, 0)
	}
	return out
}
