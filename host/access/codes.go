package access

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"time"
)

const (
	codesVersion = 1
	maxCodes     = 4096
)

// Codes notes which codes for previews were used, at all nodes of a cluster together. It
// implements preview.Used, and is safe for concurrent use.
type Codes struct{ doc Doc[codesFile] }

// usedCode is a record of the document.
type usedCode struct {
	Code  []byte    `json:"sha256"`
	Until time.Time `json:"until"`
}

// codesFile is the content of the document.
type codesFile struct {
	Version int        `json:"version"`
	Used    []usedCode `json:"used"`
}

// OpenCodes keeps used codes in a document, which may be missing.
func OpenCodes(at Place) *Codes {
	return &Codes{Doc[codesFile]{At: at, What: "codes of previews", Version: codesVersion, Empty: codesFile{Version: codesVersion}}}
}

var errTooManyCodes = errors.New("too many codes of previews are used at a time")

// Use implements preview.Used.
func (c *Codes) Use(code [sha256.Size]byte, until time.Time) (first bool, err error) {
	err = c.doc.Change(func(f *codesFile) error {
		now := time.Now()
		f.Used = slices.DeleteFunc(f.Used, func(one usedCode) bool { return now.After(one.Until.Add(clocks)) })
		first = !slices.ContainsFunc(f.Used, func(one usedCode) bool { return bytes.Equal(one.Code, code[:]) })
		if !first {
			return errSame
		}
		if len(f.Used) >= maxCodes {
			return errTooManyCodes
		}
		f.Used = append(f.Used, usedCode{code[:], until.UTC()})
		return nil
	})
	return first && err == nil, err
}

// clocks is how far the clocks of nodes may be apart.
const clocks = time.Minute
