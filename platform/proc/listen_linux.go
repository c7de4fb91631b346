package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// stateListen is TCP_LISTEN of linux/net/tcp_states.h, as /proc/net/tcp shows it (proc_net_tcp in the kernel's documentation).
const stateListen = "0A"

func listens(tag string, port int) (bool, error) {
	sockets := map[string]bool{} // as links in /proc/PID/fd name them
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if err := listeners(table, port, sockets); err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			return false, err
		}
	}
	if len(sockets) == 0 {
		return false, nil
	}
	tree, err := Tagged(tag)
	if err != nil {
		return false, err
	}
	for _, p := range tree {
		dir := procFile(p.Pid, "fd")
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue // it has ended
		}
		for _, fd := range fds {
			if target, err := os.Readlink(dir + "/" + fd.Name()); err == nil && sockets[target] {
				return true, nil
			}
		}
	}
	return false, nil
}

// listeners adds the sockets of one table that listen on the port. A line is "sl local rem state tx:rx tr:when retrnsmt uid timeout
// inode …", where local is an address and a port in hexadecimal.
func listeners(table string, port int, sockets map[string]bool) error {
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
		_, hex, _ := strings.Cut(fields[1], ":")
		if at, err := strconv.ParseUint(hex, 16, 16); err == nil && int(at) == port {
			sockets["socket:["+fields[9]+"]"] = true
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", table, err)
	}
	return nil
}
