package display

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/vocab"
)

// portName names a lent port.
func portName(p vocab.LentPort) string {
	if p.Port == 0 {
		return "auto"
	}
	return strconv.Itoa(p.Port)
}

// portNames names lent ports in few words: those that were found for auto in place of it.
func portNames(all []vocab.LentPort) []string {
	var open, closed []string
	found := slices.ContainsFunc(all, func(p vocab.LentPort) bool { return p.Auto && p.IsOpen() })
	for _, p := range all {
		switch {
		case p.Closed != "":
			closed = append(closed, portName(p))
		case p.Port != 0 || !found:
			open = append(open, portName(p))
		}
	}
	var parts []string
	if len(open) > 0 {
		parts = append(parts, portWord(len(open))+strings.Join(open, " "))
	}
	if len(closed) > 0 {
		parts = append(parts, portWord(len(closed))+strings.Join(closed, " ")+" closed")
	}
	return parts
}

func portWord(n int) string {
	if n == 1 {
		return "port "
	}
	return "ports "
}

// portText says which port is open, for how long and for what.
func portText(p vocab.LentPort) string {
	text := "port " + portName(p)
	if p.Guests {
		text += " (for guests with a link)"
	}
	if p.Write {
		text += " (also for writing)"
	}
	if !p.Until.IsZero() {
		text += " until " + Clock(p.Until)
	}
	if p.Closed != "" {
		text += " (closed: " + Printable(p.Closed, 200) + ")"
	}
	return text
}

// PortInFull is portText with since when the port is open, and how often it was used.
func PortInFull(p vocab.LentPort) string {
	text := portText(p)
	if p.Closed == "" {
		text += ", open for " + Ago(time.Since(p.Since))
	}
	if p.Port == 0 {
		return text
	}
	text += ", fetched " + Count(int(p.Fetched), "time")
	if !p.Latest.IsZero() {
		text += fmt.Sprintf(", last %s ago", Ago(time.Since(p.Latest)))
	}
	return text
}
