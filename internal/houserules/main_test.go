package houserules

import (
	"fmt"
	"os"
	"testing"
)

// The rules are about the whole project: tests run in its root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
