package access_test

import (
	"crypto/sha256"
	"path/filepath"
	"testing"
	"time"

	"tether/host/access"
)

// A code counts once, at all nodes with the same document.
func TestCodesCountOnce(t *testing.T) {
	at := access.File(filepath.Join(t.TempDir(), "state", "codes.json"))
	one, other := access.OpenCodes(at), access.OpenCodes(at)
	a, b := sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))
	until := time.Now().Add(time.Minute)
	for i, c := range []struct {
		node  *access.Codes
		code  [sha256.Size]byte
		until time.Time
		first bool
	}{{one, a, until, true}, {one, a, until, false}, {other, a, until, false}, {other, b, until.Add(-2 * time.Hour), true}, {one, b, until, true}, {other, b, until, false}, {other, a, until, false}} {
		if first, err := c.node.Use(c.code, c.until); first != c.first || err != nil {
			t.Errorf("%d: %v, %v", i, first, err)
		}
	}
}
