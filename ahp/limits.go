package ahp

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits for data from a peer. AHP defines none; these are ours, far above the sizes that
// known hosts and clients send and far below harmful ones.
const (
	MaxURI           = 2 << 10   // bytes; the customary limit of URLs
	MaxCwd           = 4 << 10   // bytes; PATH_MAX of Linux
	MaxTitle         = 4 << 10   // bytes
	MaxClientID      = 256       // bytes
	MaxCommandID     = 256       // bytes; "cmd-1" in practice
	MaxCommandLine   = 64 << 10  // bytes; a longer line is cut by its producer
	MaxData          = 1 << 20   // bytes of text in one data, output or input action
	MaxSubscriptions = 1024      // URIs in one initialize or reconnect
	MaxVersions      = 64        // protocol versions in one offer
	MaxVersion       = 32        // bytes of one protocol version
	MaxSize          = 1000      // columns or rows; 0 and negative are refused, too
	MaxTools         = 64        // tools of one active client
	MaxToolName      = 128       // bytes
	MaxDescription   = 16 << 10  // bytes of a tool's description
	MaxSchema        = 64 << 10  // bytes of a tool's schema
	MaxID            = 256       // bytes of the id of a turn or a tool call
	MaxToolContents  = 256       // blocks in a tool call's result
	MaxGraceMs       = 3_600_000 // milliseconds; longer grace times of a marker count as this
	MinHeartbeatMs   = 1000      // milliseconds; shorter heartbeats of a marker count as this
	MaxHeartbeatMs   = 3_600_000 // milliseconds; longer heartbeats of a marker count as this
)

func checkSize(name string, n int64) error {
	if n < 1 || n > MaxSize {
		return fmt.Errorf("%s is %d, want 1 to %d", name, n, MaxSize)
	}
	return nil
}

func checkLength(name, s string, limit int) error {
	if len(s) > limit {
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", name, len(s), limit)
	}
	return nil
}

// CheckURI checks s as a channel or resource URI: it must have a scheme, must be valid
// UTF-8 without spaces and control characters, and at most MaxURI bytes long. It is
// otherwise opaque and compared byte by byte.
func CheckURI(s string) error { return checkURI("channel", s) }

func checkURI(name, s string) error {
	switch i := strings.IndexByte(s, ':'); {
	case s == "":
		return fmt.Errorf("%s is missing", name)
	case len(s) > MaxURI:
		return checkLength(name, s, MaxURI)
	case !printable(s) || strings.Contains(s, " "):
		return fmt.Errorf("%s holds a space or a character that is not printable", name)
	case i < 1 || !isScheme(s[:i]):
		return fmt.Errorf("%s %.80q has no scheme", name, s)
	}
	return nil
}

// isScheme follows RFC 3986, 3.1.
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(s[i]))) {
			return false
		}
	}
	return true
}

// CheckClientID checks s as a client id. An empty id would strand every terminal that it
// claims.
func CheckClientID(s string) error {
	switch {
	case s == "":
		return errors.New("clientId is missing or empty")
	case !printable(s):
		return errors.New("clientId holds a character that is not printable")
	}
	return checkLength("clientId", s, MaxClientID)
}

// printable reports whether s is valid UTF-8 without C0 and C1 controls.
func printable(s string) bool {
	control := func(r rune) bool { return r < ' ' || (r >= 0x7f && r < 0xa0) }
	return utf8.ValidString(s) && strings.IndexFunc(s, control) < 0
}

// CleanTitle returns s without characters that would disturb a list of titles: control
// characters and changes of the writing direction.
func CleanTitle(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r >= 0x2028 && r <= 0x202E || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
}
