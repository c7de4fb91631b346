package proc

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// stateListen is TCP_LISTEN of linux/net/tcp_states.h, as /proc/net/tcp shows it (proc_net_tcp in the kernel's documentation).
const stateListen = "0A"

// listening are sockets that listen, named as links in /proc/PID/fd name them.
type listening map[string]netip.AddrPort

// readListening reads the tables of both kinds of addresses.
func readListening() (listening, error) {
	all := listening{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if err := all.read(table); err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			return nil, err
		}
	}
	return all, nil
}

func listens(t Terminal, port int) (bool, error) {
	all, err := readListening()
	if err != nil {
		return false, err
	}
	for socket, at := range all {
		if int(at.Port()) != port {
			delete(all, socket)
		}
	}
	if len(all) == 0 {
		return false, nil
	}
	tree, err := Tagged(Tag(t.ID))
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(tree, func(p Info) bool { return len(all.of(p.Pid)) > 0 }), nil
}

func listeners(terminals []Terminal) (map[string][]Listener, error) {
	all, err := readListening()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, t := range terminals {
		wanted[t.ID] = true
	}
	var some []Listener
	in := map[int][]string{}
	_, err = scan(func(p Info) {
		if p.Zombie || !mine(p) {
			return
		}
		marks, _ := marksOf(p.Pid)
		ids := slices.DeleteFunc(marks, func(id string) bool { return !wanted[id] })
		if len(ids) == 0 {
			return
		}
		in[p.Pid] = ids
		for _, at := range all.of(p.Pid) {
			some = append(some, Listener{p.Pid, at})
		}
	})
	return sorted(some, in), err
}

// of returns those that a process has open.
func (all listening) of(pid int) []netip.AddrPort {
	dir := procFile(pid, "fd")
	fds, err := os.ReadDir(dir)
	if err != nil {
		return nil // it has ended
	}
	var some []netip.AddrPort
	for _, fd := range fds {
		if target, err := os.Readlink(dir + "/" + fd.Name()); err == nil {
			if at, ok := all[target]; ok && !slices.Contains(some, at) {
				some = append(some, at)
			}
		}
	}
	return some
}

// read adds the sockets of one table that listen. A line is "sl local rem state tx:rx tr:when retrnsmt uid timeout inode …", where
// local is an address and a port in hexadecimal.
func (all listening) read(table string) error {
	f, err := os.Open(table)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != stateListen {
			continue
		}
		if at, ok := parseAddr(fields[1]); ok {
			all["socket:["+fields[9]+"]"] = at
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	return nil
}

// parseAddr reads an address as the tables have it: words of 32 bits in the order of this machine, in hexadecimal, and the port.
func parseAddr(s string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := raw; len(word) > 0; word = word[4:] {
		binary.BigEndian.PutUint32(word, binary.NativeEndian.Uint32(word))
	}
	addr, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}
