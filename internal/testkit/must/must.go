// Package must ends a test at an error that only a defect or the machine can cause. It
// imports nothing of tether, so tests of every package can use it.
package must

import "testing"

// Do ends the test if err is not nil:
//
//	must.Do(t, os.Mkdir(dir, 0o700))
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns v, or ends the test if err is not nil:
//
//	data := must.Get(os.ReadFile(path))(t)
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}
