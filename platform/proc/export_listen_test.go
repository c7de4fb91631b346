package proc

// For tests of what other systems tell.
var (
	LsofArgs  = lsofArgs
	ParseLsof = parseLsof
	Owners    = owners
	Sorted    = sorted
)

// ParseTCPTable reads a table of IPv4, or of IPv6.
func ParseTCPTable(table []byte, six bool) []Listener {
	if six {
		return parseTCPTable(table, tcpRow6)
	}
	return parseTCPTable(table, tcpRow4)
}
