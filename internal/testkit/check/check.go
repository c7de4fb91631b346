// Package check reports what is wrong in a test, and the test goes on. It imports nothing
// of tether, so tests of every package can use it.
package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// OK reports err, if it is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Equal reports how got differs from want, after what they are; "" is what the test is
// about.
func Equal(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
