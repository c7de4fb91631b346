package main

import (
	"os"
	"path/filepath"
	"testing"

	"tether/agent/config"
)

func TestCapIsTheConfiguredOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte(capConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file)
	if err != nil || c.Terminals.TotalLogBytes != cappedLogs || c.Terminals.MaxRunning < thorough.floods {
		t.Errorf("%+v, %v", c.Terminals, err)
	}
}
