package version

import (
	"fmt"
	"strconv"
	"strings"

	"tether/internal/lazyregexp"
)

// base is set by the linker when a release is built for an address.
var base string

// Base returns the address of the directory with the files of releases, or "" if this
// build knows none.
func Base() string { return base }

var (
	form   = lazyregexp.New(`^(\d{1,3})\.(\d{1,3})\.(\d{1,5})(?:-([a-z]+)(\d{0,9}))?(?:\+[0-9a-z.]+)?$`)
	listed = lazyregexp.New(`(?m)^[0-9a-f]{64}  tether_([0-9a-z.+-]{5,100})\.cdx\.json$`)
)

// Listed returns the version of a release from its list of checksums.
func Listed(sums string) (string, error) {
	m := listed().FindStringSubmatch(sums)
	if m == nil || !form().MatchString(m[1]) {
		return "", fmt.Errorf("no list of checksums of tether")
	}
	return m[1], nil
}

// Newer tells whether a release is newer than another, without regard to the commit after
// the plus. known is false if one of them is not the version of a release.
func Newer(one, other string) (newer, known bool) {
	a, b := form().FindStringSubmatch(one), form().FindStringSubmatch(other)
	if a == nil || b == nil {
		return false, false
	}
	for i := 1; i <= 3; i++ {
		if a[i] != b[i] {
			return number(a[i]) > number(b[i]), true
		}
	}
	if a[4] == "" || b[4] == "" || a[4] != b[4] {
		// The words of pre-releases are in the alphabet's order; none is the release
		// itself.
		return b[4] != "" && (a[4] == "" || strings.Compare(a[4], b[4]) > 0), true
	}
	return number(a[5]) > number(b[5]), true
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // few digits, or none: 0
	return n
}
