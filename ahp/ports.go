package ahp

import "fmt"

// Lent ports. A host whose marker has ports sends HTTP requests to a machine whose marker
// has them, too: as HTTP/2 without TLS on the link's stream of binary messages, in which
// the host is the client.
//
// Header fields whose names begin with PortsPrefix are between host and machine. Neither
// passes them on to a browser or a dev server, nor takes them from there.
const (
	PortsPrefix = "Tether-"
	// PortsTerminal is in each request: the URI of the terminal.
	PortsTerminal = "Tether-Terminal"
	// PortsPort is in each request: the decimal number of the port.
	PortsPort = "Tether-Port"
	// PortsReader is in each request: who asks, a Reader as JSON.
	PortsReader = "Tether-Reader"
	// PortsCall says that the request is a call of that tool, and no request to the dev
	// server; its body and answer are JSON.
	PortsCall = "Tether-Call"
	// PortsUpgrade is in a request, and then in its answer, for a connection that changes
	// to that protocol, such as websocket: both bodies are its bytes.
	PortsUpgrade = "Tether-Upgrade"
	// PortsError is in an answer of the machine itself, not of the dev server: the
	// reason, for people.
	PortsError = "Tether-Error"
)

// MaxPortsReader bounds the value of PortsReader, in bytes.
const MaxPortsReader = 16 << 10

// MethodTaken is a notification of each side to the other, once both markers have ports:
// how much of the stream it has taken. Params are TakenParams.
const MethodTaken = "x-tether/taken"

// TakenParams is the params of MethodTaken.
type TakenParams struct {
	Bytes int64 `json:"bytes"` // of all streams of this connection
}

// Validate checks the params.
func (p TakenParams) Validate() error {
	if p.Bytes < 0 {
		return fmt.Errorf("bytes is %d, want 0 or more", p.Bytes)
	}
	return nil
}
