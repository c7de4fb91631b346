package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// programsVar names a directory with the programs, which scripts/test.sh builds once for all packages.
const programsVar = "TETHER_TEST_PROGRAMS"

// Build puts tether and tether-host into a directory as make build makes them: without the race detector. It takes seconds, or next to
// nothing in make test.
func Build(dir string) error {
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "tether/cmd/...")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if from := os.Getenv(programsVar); from != "" {
		// Not by this process: a program that it still has open for writing while it starts another one cannot be run.
		c = exec.Command("cp", filepath.Join(from, "tether"), filepath.Join(from, "tether-host"), dir)
	}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}
