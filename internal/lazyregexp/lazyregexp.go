// Package lazyregexp compiles the expressions of package-level variables when they are
// first used, so that no program pays at its start for those that it does not use. A
// house rule refuses others.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression, always the same. It may be
// called concurrently; it panics if expr is wrong.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
