package ipc

import "net"

// WritePassing writes p to conn and passes nothing.
func WritePassing(conn net.Conn, p []byte, _ Passable) error {
	_, err := conn.Write(p)
	return err
}

func writeNow(uintptr, []byte) int { return 0 }
func closeDescriptor(uintptr)      {}
