package proc

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tcpListen is TCP_LISTEN of linux/net/tcp_states.h, and stateListen that as
// /proc/net/tcp shows it (proc_net_tcp in the kernel's documentation).
const (
	tcpListen   = 10
	stateListen = "0A"
)

// tcpTables are the kernel's tables of TCP sockets, one for each kind of address.
var tcpTables = []string{"/proc/net/tcp", "/proc/net/tcp6"}

// listening are sockets that listen, named as links in /proc/PID/fd name them.
type listening map[string]netip.AddrPort

// readListening asks the kernel for the listening sockets, and reads its tables only
// where it does not answer: they have all sockets, and the kernel takes tens of
// milliseconds for that on a machine with much memory, however few there are.
func readListening() (listening, error) {
	all := listening{}
	if all.ask(unix.AF_INET) == nil && all.ask(unix.AF_INET6) == nil {
		return all, nil
	}
	for _, table := range tcpTables {
		if err := all.read(table); err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			return nil, err
		}
	}
	return all, nil
}

// The sizes of inet_diag_req_v2 and inet_diag_msg of linux/inet_diag.h, with their
// netlink headers.
const (
	diagRequest = unix.SizeofNlMsghdr + 56
	diagAnswer  = 72
)

// ask adds the listening sockets of one kind of addresses. See sock_diag(7).
func (all listening) ask(family uint8) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var request [diagRequest]byte
	order := binary.NativeEndian
	order.PutUint32(request[0:], diagRequest)
	order.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request[16], request[17] = family, unix.IPPROTO_TCP
	order.PutUint32(request[20:], 1<<tcpListen)
	if err := unix.Sendto(fd, request[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 32<<10) // the kernel sends at most so much at once
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch d := m.Data; {
			case m.Header.Type == unix.NLMSG_DONE:
				return nil
			case m.Header.Type == unix.NLMSG_ERROR, len(d) < diagAnswer:
				return errors.New("no list of sockets")
			default:
				size := map[uint8]int{unix.AF_INET: 4, unix.AF_INET6: 16}[d[0]]
				addr, _ := netip.AddrFromSlice(d[8 : 8+size]) // the address is in network order
				inode := socket{inode: strconv.FormatUint(uint64(order.Uint32(d[68:])), 10)}
				all[inode.link()] = netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(d[4:]))
			}
		}
	}
}

func onPort(port int, terminals []Terminal) ([]Bound, error) {
	all, err := readListening()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(_ string, at netip.AddrPort) bool { return int(at.Port()) != port })
	if len(all) == 0 {
		return nil, nil
	}
	own := map[string]bool{}
	visit := func(pid int, _ []string) (more bool) {
		eachOpen(pid, func(link []byte) {
			if _, ok := all[string(link)]; ok {
				own[string(link)] = true
			}
		})
		return len(own) < len(all)
	}
	err = scanMarked(terminals, visit)
	var some []Bound
	for socket, at := range all {
		some = append(some, Bound{at.Addr(), own[socket]})
	}
	return some, err
}

// scanMarked calls visit for each process of this user in one of the terminals, with the
// IDs of those, until it returns false. It looks at nothing but the environment of other
// processes, which may be many, and so comes to the children of the terminals' programs
// first.
func scanMarked(terminals []Terminal, visit func(pid int, ids []string) (more bool)) error {
	unmarked, err := unmarkedIn(terminals)
	seen := map[int]bool{}
	one := func(pid int) (more bool) {
		if seen[pid] {
			return true
		}
		seen[pid] = true
		ids := slices.Concat(unmarked[pid], inOf(marksOf(pid).Terminals, terminals))
		return len(ids) == 0 || !mine(Info{ID: ID{Pid: pid}}) || visit(pid, ids)
	}
	for _, t := range terminals {
		if t.Pid > 1 && !eachBelow(t.Pid, one) {
			return err
		}
	}
	return errors.Join(err, eachPid(one))
}

// eachBelow calls visit with a process and with those that its main threads have started,
// as far as the kernel lists them, until it returns false, and returns what visit did.
func eachBelow(pid int, visit func(pid int) (more bool)) bool {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		if !visit(all[i]) {
			return false
		}
		list, _ := os.ReadFile(procFile(all[i], "task/"+strconv.Itoa(all[i])+"/children"))
		for _, name := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(name); err == nil && !slices.Contains(all, child) {
				all = append(all, child)
			}
		}
	}
	return true
}

// unmarkedIn returns which of the terminals without marks each process is in.
func unmarkedIn(terminals []Terminal) (map[int][]string, error) {
	some := slices.DeleteFunc(slices.Clone(terminals), func(t Terminal) bool { return !t.Unmarked })
	if len(some) == 0 {
		return nil, nil
	}
	all, err := List()
	return owners(all, some), err
}

// eachPid calls visit with the number of each process, until it returns false.
func eachPid(visit func(pid int) (more bool)) error {
	names, err := pidNames()
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && !visit(pid) { // otherwise it is not a process
			return nil
		}
	}
	return err
}

// inOf returns those of the IDs that terminals have.
func inOf(ids []string, terminals []Terminal) (some []string) {
	for _, id := range ids {
		if slices.ContainsFunc(terminals, func(t Terminal) bool { return t.ID == id }) {
			some = append(some, id)
		}
	}
	return some
}

func listeners(terminals []Terminal) (map[string][]Listener, error) {
	all, err := readListening()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var some []Listener
	in := map[int][]string{}
	err = scanMarked(terminals, func(pid int, ids []string) bool {
		in[pid] = ids
		for _, at := range all.of(pid) {
			some = append(some, Listener{pid, at})
		}
		return true
	})
	return sorted(some, in), err
}

func allListeners(terminals []Terminal) (some []Held, err error) {
	all, err := readListening()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	unmarked, err := unmarkedIn(terminals)
	if err != nil {
		return nil, err
	}
	err = eachPid(func(pid int) bool {
		open := all.of(pid) // first, because few processes listen, and the rest takes longer
		if len(open) == 0 || !mine(Info{ID: ID{Pid: pid}}) {
			return true
		}
		marks := marksOf(pid).Terminals
		in := slices.Concat(unmarked[pid], inOf(marks, terminals))
		for _, at := range open {
			some = append(some, Held{Listener{pid, at}, in, marks})
		}
		return true
	})
	return some, err
}

func directories(pids []int) map[int]string {
	all := map[int]string{}
	for _, pid := range pids {
		if dir, err := os.Readlink(procFile(pid, "cwd")); err == nil {
			all[pid] = dir
		}
	}
	return all
}

// of returns the listening addresses that a process has open.
func (all listening) of(pid int) []netip.AddrPort {
	var some []netip.AddrPort
	eachOpen(pid, func(link []byte) {
		if at, ok := all[string(link)]; ok {
			some = append(some, at)
		}
	})
	slices.SortFunc(some, netip.AddrPort.Compare)
	return slices.Compact(some)
}

// eachOpen calls visit with the beginning of each link in /proc/PID/fd: with none if the
// process has ended or may not be examined. It keeps no reference to link.
func eachOpen(pid int, visit func(link []byte)) {
	dir, err := os.Open(procFile(pid, "fd"))
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // names read before an error count
	var buf [64]byte                 // "socket:[", a number of 64 bits, "]"
	for _, name := range names {
		if n, err := unix.Readlinkat(int(dir.Fd()), name, buf[:]); err == nil {
			visit(buf[:n])
		}
	}
}

// read adds the listening sockets of one table.
func (all listening) read(table string) error {
	return eachSocket(table, func(s socket) {
		if s.state == stateListen {
			all[s.link()] = s.local
		}
	})
}

// socket is one line of a kernel table of sockets.
type socket struct {
	local, remote     netip.AddrPort
	state, uid, inode string
}

// link is the text of links to it in /proc/PID/fd.
func (s socket) link() string { return "socket:[" + s.inode + "]" }

// eachSocket calls visit for each socket of one table. A line is "sl local rem state
// tx:rx tr:when retrnsmt uid timeout inode …", where local and rem are an address and a
// port in hexadecimal.
func eachSocket(table string, visit func(socket)) error {
	f, err := os.Open(table)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 {
			continue
		}
		s := socket{state: fields[3], uid: fields[7], inode: fields[9]}
		var ok, ok2 bool
		s.local, ok = parseAddr(fields[1])
		s.remote, ok2 = parseAddr(fields[2])
		if ok && ok2 {
			visit(s)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	return nil
}

// parseAddr reads an address as the tables have it: words of 32 bits in the order of this
// machine, in hexadecimal, and the port.
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
