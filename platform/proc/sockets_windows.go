package proc

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

var getExtendedTCPTable = windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetExtendedTcpTable")

// listenersOnly is TCP_TABLE_OWNER_PID_LISTENER of iprtrmib.h.
const listenersOnly = 3

// A table of maxTable bytes has more than 70,000 sockets. While it is asked for it may
// grow: it is asked for again.
const (
	maxTable  = 4 << 20
	tableAsks = 8
)

// sockets are the addresses of both families on which any process listens.
func sockets() ([]Listener, error) {
	four, err := tcpTable(windows.AF_INET, listenersOnly)
	if err != nil {
		return nil, err
	}
	six, err := tcpTable(windows.AF_INET6, listenersOnly)
	if err != nil && !errors.Is(err, windows.ERROR_NOT_SUPPORTED) { // a machine without IPv6
		return nil, err
	}
	return append(listenersIn(four, tcpRow4), listenersIn(six, tcpRow6)...), nil
}

// tcpTable is the table of a class of sockets as GetExtendedTcpTable writes it.
func tcpTable(family, class uint32) ([]byte, error) {
	size := uint32(16 << 10)
	for range tableAsks {
		table := make([]byte, size)
		status, _, _ := getExtendedTCPTable.Call(uintptr(unsafe.Pointer(&table[0])), uintptr(unsafe.Pointer(&size)), 0, uintptr(family), uintptr(class), 0)
		switch err := windows.Errno(status); {
		case status == 0:
			return table, nil
		case !errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER) || size > maxTable:
			return nil, fmt.Errorf("list sockets: %w", err)
		}
	}
	return nil, errors.New("list sockets: the table keeps growing")
}
