package ahp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Versions returns the protocol versions this package speaks, newest first; a client
// offers exactly these.
func Versions() []string { return []string{"1.0.0", "0.9.0", "0.8.0", "0.7.0"} }

// VersionError says that no offered version fits. A host answers it with
// CodeUnsupportedProtocolVersion and Data.
type VersionError struct {
	Offered   []string
	Supported []string // versions or ranges of the side that refused
	Chosen    string   // what a host chose that was not offered, instead of refusing; "" of one that refused
}

// Error implements error.
func (e *VersionError) Error() string {
	if e.Chosen != "" {
		return fmt.Sprintf("the host chose protocol version %.40q, which was not offered: %s", e.Chosen, strings.Join(e.Offered, ", "))
	}
	return fmt.Sprintf("no common protocol version: offered %s, supported %s",
		strings.Join(e.Offered, ", "), strings.Join(e.Supported, ", "))
}

// VersionErrorData is the data member of a CodeUnsupportedProtocolVersion error.
type VersionErrorData struct {
	SupportedVersions []string `json:"supportedVersions"`
}

// Data returns the error's data member as JSON.
func (e *VersionError) Data() json.RawMessage {
	return marshal(VersionErrorData{SupportedVersions: list(e.Supported)})
}

// Negotiate returns the version that a host speaks with a client that offered these: the
// highest offered one inside the caret range of a version in Versions, verbatim. The
// order of the offer does not matter. A *VersionError means that none fits. Any other
// error means that the offer is too long or an entry is malformed; such an entry is never
// skipped silently.
func Negotiate(offered []string) (string, error) {
	if len(offered) > MaxVersions {
		return "", fmt.Errorf("protocolVersions has %d entries, at most %d are allowed", len(offered), MaxVersions)
	}
	best, chosen := version{}, ""
	for _, s := range offered {
		v, err := parseVersion(s)
		if err != nil {
			return "", err
		}
		if supported(v) && (chosen == "" || v.compare(best) > 0) {
			best, chosen = v, s
		}
	}
	if chosen == "" {
		return "", &VersionError{Offered: offered, Supported: Versions()}
	}
	return chosen, nil
}

// HasLifecycle reports whether terminals of this negotiated version carry "lifecycle"
// (since 0.9.0) rather than a bare "exitCode". An unreadable version counts as the
// newest.
func HasLifecycle(s string) bool {
	v, err := parseVersion(s)
	return err != nil || v.compare(version{0, 9, 0}) >= 0
}

func supported(v version) bool {
	return slices.ContainsFunc(Versions(), func(s string) bool {
		base, err := parseVersion(s)
		return err == nil && v.inCaretOf(base)
	})
}

// version is MAJOR, MINOR, PATCH.
type version [3]int

// parseVersion reads three decimal numbers without leading zeros; AHP versions have no
// pre-release tags.
func parseVersion(s string) (version, error) {
	var v version
	parts := strings.Split(s, ".")
	if len(parts) != len(v) || len(s) > MaxVersion {
		return v, fmt.Errorf("protocol version %.40q: want MAJOR.MINOR.PATCH", s)
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil || strconv.FormatUint(n, 10) != p {
			return v, fmt.Errorf("protocol version %.40q: want MAJOR.MINOR.PATCH", s)
		}
		v[i] = int(n)
	}
	return v, nil
}

func (v version) compare(w version) int { return slices.Compare(v[:], w[:]) }

// inCaretOf reports whether v is not below base, and equals it up to and including base's
// first number that is not zero.
func (v version) inCaretOf(base version) bool {
	for i := range base {
		if v[i] != base[i] {
			return false
		}
		if base[i] != 0 {
			break
		}
	}
	return v.compare(base) >= 0
}
