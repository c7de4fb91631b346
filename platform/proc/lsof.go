package proc

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// lsofFormat asks lsof for numbers instead of names (-nP), no warnings (-w), all
// conditions at once (-a), and one field a line (-F): the process (p), the kind of
// address (t) and the address (n).
var lsofFormat = []string{"-nPw", "-a", "-F", "ptn"}

// lsofArgs are the conditions for the TCP sockets on which processes of a user listen.
func lsofArgs(uid int) []string { return []string{"-iTCP", "-sTCP:LISTEN", "-u", strconv.Itoa(uid)} }

// parseLsof reads the output of lsof for these arguments. A line is a letter and a value;
// the lines of a process precede those of its sockets. Lines with other letters and
// unreadable lines are skipped.
func parseLsof(out []byte) []Listener {
	var all []Listener
	pid, any := 0, netip.IPv4Unspecified()
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		switch value := line[1:]; line[0] {
		case 'p':
			pid, _ = strconv.Atoi(value)
		case 't':
			any = netip.IPv4Unspecified()
			if value == "IPv6" {
				any = netip.IPv6Unspecified()
			}
		case 'n':
			if at, ok := parseLsofName(value, any); ok && pid > 0 {
				all = append(all, Listener{pid, at})
			}
		}
	}
	return all
}

// parseLsofName reads an address and a port, where * is any address.
func parseLsofName(name string, any netip.Addr) (netip.AddrPort, bool) {
	if port, ok := strings.CutPrefix(name, "*:"); ok {
		n, err := strconv.ParseUint(port, 10, 16)
		return netip.AddrPortFrom(any, uint16(n)), err == nil
	}
	at, err := netip.ParseAddrPort(name)
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), err == nil
}

// parseLsofClient returns the processes that have a connection from client to server
// open.
func parseLsofClient(out []byte, client, server netip.AddrPort) []int {
	var all []int
	pid := 0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "p"):
			pid, _ = strconv.Atoi(line[1:])
		case strings.HasPrefix(line, "n") && pid > 0 && !slices.Contains(all, pid):
			from, to, _ := strings.Cut(line[1:], "->")
			local, ok := parseLsofName(from, netip.Addr{})
			remote, ok2 := parseLsofName(to, netip.Addr{})
			if ok && ok2 && local == client && remote == server {
				all = append(all, pid)
			}
		}
	}
	return all
}

// parseLsofDirs returns the directories of processes. lsof writes control characters in
// them as escapes: such a directory is left out.
func parseLsofDirs(out []byte) map[int]string {
	all := map[int]string{}
	pid := 0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "p"):
			pid, _ = strconv.Atoi(line[1:])
		case strings.HasPrefix(line, "n/") && pid > 0 && !strings.Contains(line, `\`):
			all[pid] = line[1:]
		}
	}
	return all
}
