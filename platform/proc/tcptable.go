package proc

import (
	"encoding/binary"
	"net/netip"
)

// tcpRow says where things are in a row of the tables that Windows has of its sockets, in bytes from the row's start.
type tcpRow struct {
	size, addr, addrLen, port, state, pid int
}

// The rows of MIB_TCPROW_OWNER_PID and MIB_TCP6ROW_OWNER_PID (tcpmib.h). A table is their number, in 32 bits, and then they.
var (
	tcpRow4 = tcpRow{size: 24, state: 0, addr: 4, addrLen: 4, port: 8, pid: 20}
	tcpRow6 = tcpRow{size: 56, addr: 0, addrLen: 16, port: 20, state: 48, pid: 52}
)

// stateTCPListen is MIB_TCP_STATE_LISTEN.
const stateTCPListen = 2

// parseTCPTable returns the sockets of a table that listen. What is cut off is left out.
func parseTCPTable(table []byte, row tcpRow) []Listener {
	if len(table) < 4 {
		return nil
	}
	n, rows := binary.LittleEndian.Uint32(table), table[4:]
	var all []Listener
	for ; n > 0 && len(rows) >= row.size; n, rows = n-1, rows[row.size:] {
		if binary.LittleEndian.Uint32(rows[row.state:]) != stateTCPListen {
			continue
		}
		addr, _ := netip.AddrFromSlice(rows[row.addr : row.addr+row.addrLen])
		port := binary.BigEndian.Uint16(rows[row.port:]) // the network's order, and then two bytes that mean nothing
		all = append(all, Listener{int(binary.LittleEndian.Uint32(rows[row.pid:])), netip.AddrPortFrom(addr.Unmap(), port)})
	}
	return all
}
