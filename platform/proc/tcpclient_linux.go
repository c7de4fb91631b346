package proc

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
)

func findTCPClient(client, server netip.AddrPort) (TCPClient, error) {
	var its socket
	for _, table := range tcpTables {
		err := eachSocket(table, func(s socket) {
			if s.local == client && s.remote == server {
				its = s
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			return TCPClient{}, err
		}
	}
	if its.inode == "" || its.inode == "0" { // no process has it, and the kernel still sends the rest
		return TCPClient{}, ErrNoConnection
	}
	found := TCPClient{Foreign: its.uid != strconv.Itoa(os.Getuid())}
	want := its.link()
	_, err := scan(func(p Info) {
		has := false
		eachOpen(p.Pid, func(link []byte) { has = has || string(link) == want })
		if has {
			found.Processes = append(found.Processes, p.ID)
		}
	})
	return found, err
}
