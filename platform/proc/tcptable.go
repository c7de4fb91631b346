package proc

import (
	"encoding/binary"
	"net/netip"
)

// tcpRow says where things are in a row of the tables that Windows has of its sockets, in
// bytes from the row's start.
type tcpRow struct {
	size, addr, addrLen, port, remote, remotePort, state, pid int
}

// The rows of MIB_TCPROW_OWNER_PID and MIB_TCP6ROW_OWNER_PID (tcpmib.h). A table is their
// number, in 32 bits, and then they.
var (
	tcpRow4 = tcpRow{size: 24, state: 0, addr: 4, addrLen: 4, port: 8, remote: 12, remotePort: 16, pid: 20}
	tcpRow6 = tcpRow{size: 56, addr: 0, addrLen: 16, port: 20, remote: 24, remotePort: 44, state: 48, pid: 52}
)

// stateTCPListen is MIB_TCP_STATE_LISTEN.
const stateTCPListen = 2

// tcpEntry is a row of a table.
type tcpEntry struct {
	local, remote netip.AddrPort // remote means nothing of a socket that listens
	state         uint32
	pid           int
}

// parseTCPTable returns the rows of a table. Incomplete rows are left out.
func parseTCPTable(table []byte, row tcpRow) []tcpEntry {
	if len(table) < 4 {
		return nil
	}
	n, rows := binary.LittleEndian.Uint32(table), table[4:]
	var all []tcpEntry
	for ; n > 0 && len(rows) >= row.size; n, rows = n-1, rows[row.size:] {
		at := func(addr, port int) netip.AddrPort {
			a, _ := netip.AddrFromSlice(rows[addr : addr+row.addrLen])
			return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(rows[port:])) // the network's order, and then two bytes that mean nothing
		}
		all = append(all, tcpEntry{local: at(row.addr, row.port), remote: at(row.remote, row.remotePort),
			state: binary.LittleEndian.Uint32(rows[row.state:]), pid: int(binary.LittleEndian.Uint32(rows[row.pid:]))})
	}
	return all
}

// listenersIn returns the sockets of a table that listen.
func listenersIn(table []byte, row tcpRow) []Listener {
	var all []Listener
	for _, e := range parseTCPTable(table, row) {
		if e.state == stateTCPListen {
			all = append(all, Listener{e.pid, e.local})
		}
	}
	return all
}
