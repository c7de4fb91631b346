package wsconn

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"tether/internal/clip"
)

// Close codes (RFC 6455, section 7.4.1) that callers use or meet.
const (
	CloseNormal    = 1000
	CloseGoingAway = 1001
	CloseNoStatus  = 1005 // only received: a close frame without a code
	CloseAbnormal  = 1006 // only reported: no close frame came
	ClosePolicy    = 1008
	CloseTooBig    = 1009
	CloseInternal  = 1011
)

// maxReason is the longest reason in a close frame, in bytes (RFC 6455, 5.5).
const maxReason = 123

// A CloseError is returned by [Conn.Recv] when the other side has closed the connection,
// or has vanished ([CloseAbnormal]). For a clean close (1000, 1001 or no code)
// errors.Is(err, io.EOF) holds. Reason is the other side's text.
type CloseError struct {
	Code   int
	Reason string

	err error // the cause of the end of the connection, if Code is CloseAbnormal
}

// Error names the code and quotes the reason.
func (e *CloseError) Error() string {
	switch {
	case e.err != nil:
		return fmt.Sprintf("wsconn: connection lost: %v", e.err)
	case e.Reason != "":
		return fmt.Sprintf("wsconn: closed by the other side: %q (%d)", e.Reason, e.Code)
	}
	return fmt.Sprintf("wsconn: closed by the other side (%d)", e.Code)
}

// Is makes a clean close an io.EOF.
func (e *CloseError) Is(target error) bool {
	return target == io.EOF && (e.Code == CloseNormal || e.Code == CloseGoingAway || e.Code == CloseNoStatus)
}

// Unwrap returns the cause of a lost connection.
func (e *CloseError) Unwrap() error { return e.err }

// A DialError is returned by [Dial] when a server answered and refused the upgrade.
// Status 401 or 403 means that the credential is missing or wrong; a redirect shows here
// too, because none is followed.
type DialError struct {
	Status int // HTTP status
}

// Error names the status.
func (e *DialError) Error() string {
	return fmt.Sprintf("wsconn: the server refused the WebSocket: %d %s", e.Status, http.StatusText(e.Status))
}

// closeReason is as much of s as a close frame takes, which must be text.
func closeReason(s string) string { return clip.Text(strings.ToValidUTF8(s, "\ufffd"), maxReason) }
