package ahp

import (
	"encoding/json"
	"fmt"
)

// MethodLentPorts is the request of a terminal's owner that replaces the terminal's lent
// ports; params are LentPortsParams. Only hosts whose marker has ports get it.
const MethodLentPorts = "x-tether/lentPorts"

// PortsKey is in createTerminal if the terminal has lent ports, and in the terminal's
// state and its entry in the catalogue: a list of LentPort.
const PortsKey = "tether/ports"

// Bounds of lent ports.
const (
	MaxLentPorts = 16 // of a terminal
	MinLentPort  = 1024
	maxLentPort  = 65535
)

// LentPort is a TCP port on which programs of a lent terminal listen, or will. Its owner
// has opened it to those at the host who may watch the terminal.
type LentPort struct {
	Port  int64 `json:"port"`
	Write bool  `json:"write,omitempty"` // methods that change something are allowed, too
	// GuestsOnly says that only guests with a link for the port may use it.
	GuestsOnly bool `json:"guestsOnly,omitempty"`
	// UntilMs is when the lending ends, in Unix milliseconds by the owner's clock; 0: as
	// the terminal's does.
	UntilMs int64 `json:"untilMs,omitempty"`
	// SinceMs is when the port was lent, likewise. It distinguishes this lending from
	// later ones of the same port.
	SinceMs int64 `json:"sinceMs,omitempty"`
}

// LentPortsParams is the params of MethodLentPorts.
type LentPortsParams struct {
	Channel string     `json:"channel"`
	Ports   []LentPort `json:"ports"`
}

// Validate returns an error that names the first invalid field.
func (p LentPortsParams) Validate() error {
	if err := checkPorts(p.Ports); err != nil {
		return err
	}
	return CheckURI(p.Channel)
}

func checkPorts(all []LentPort) error {
	if len(all) > MaxLentPorts {
		return fmt.Errorf("a terminal has %d ports, at most %d are allowed", len(all), MaxLentPorts)
	}
	for i, p := range all {
		if p.Port < MinLentPort || p.Port > maxLentPort {
			return fmt.Errorf("port is %d, want %d to %d", p.Port, MinLentPort, maxLentPort)
		}
		if p.UntilMs < 0 || p.SinceMs < 0 {
			return fmt.Errorf("untilMs is %d and sinceMs %d, want 0 or more", p.UntilMs, p.SinceMs)
		}
		for _, before := range all[:i] {
			if before.Port == p.Port {
				return fmt.Errorf("port %d is there twice", p.Port)
			}
		}
	}
	return nil
}

// AddPorts stores a terminal's lent ports in the _meta of a CreateTerminalParams, and
// returns the _meta. None are left out.
func AddPorts(m Meta, all []LentPort) Meta {
	if len(all) == 0 {
		return m
	}
	return m.with(PortsKey, all)
}

// FindPorts returns the ports that AddPorts stored, none if they are invalid.
func FindPorts(m Meta) []LentPort {
	var all []LentPort
	if json.Unmarshal(m[PortsKey], &all) != nil || len(all) == 0 || checkPorts(all) != nil {
		return nil
	}
	return all
}
