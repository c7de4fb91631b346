package main

import (
	"testing"

	"tether/agent/config"
)

func TestCapIsTheConfiguredOne(t *testing.T) {
	c, err := config.Parse("f", []byte(capConfig))
	if err != nil || c.Terminals.TotalLogBytes != cappedLogs || c.Terminals.MaxRunning < thorough.floods {
		t.Errorf("%+v, %v", c.Terminals, err)
	}
}
