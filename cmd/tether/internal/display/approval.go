package display

import (
	"cmp"
	"fmt"
	"strings"

	"tether/agent/localapi"
)

// ApprovalLine is the command as a person would type it.
func ApprovalLine(x localapi.Approval) string {
	if x.Line != "" {
		return x.Line
	}
	return ShellLine(x.Argv)
}

// MaxShown bounds how much of a command a question shows, in bytes. tether approvals ID shows all of it.
const MaxShown = 8 << 10

// Approval describes a request in full, line by line, so that nothing hides in a long command. most bounds the bytes of the command; 0
// means no bound.
func Approval(x localapi.Approval, most int) []string {
	lines := []string{fmt.Sprintf("%s  %s, %s wants to run in %s:", x.ID, x.State, Printable(cmp.Or(x.Who, x.Actor), 160), Printable(x.Cwd, 0))}
	text := ApprovalLine(x)
	if most > 0 && len(text) > most {
		text = text[:most] + fmt.Sprintf("\n… and %d more bytes: tether approvals %s", len(text)-most, x.ID)
	}
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, "  | "+Printable(line, 0))
	}
	for _, line := range Settings(x) {
		lines = append(lines, "  "+Printable(line, 0))
	}
	if x.Reason != "" {
		lines = append(lines, fmt.Sprintf("  %s (%s)", Printable(x.Reason, 0), Printable(x.Rule, 0)))
	}
	return lines
}

// Settings lists what else determines the effect of the command, one line each: variables and scripts.
func Settings(x localapi.Approval) []string {
	var lines []string
	for _, setting := range x.Settings {
		lines = append(lines, "setting "+setting)
	}
	for _, s := range x.Scripts {
		if s.Sum == "" {
			lines = append(lines, fmt.Sprintf("script %s, unreadable (%d bytes)", s.Path, s.Size))
			continue
		}
		lines = append(lines, fmt.Sprintf("script %s, current content (%d bytes, sha256 %.12s…)", s.Path, s.Size, s.Sum))
	}
	return lines
}

// ApprovalBell rings the person's terminal and, if that supports notifications (OSC 9), says which command an agent requests. The daemon
// has masked secrets in the summary, because the terminal passes it to the desktop, where others may see it and programs may store it.
func ApprovalBell(q localapi.Approval) string {
	return "\x1b]9;tether: " + Printable(q.Summary, 300) + "\x07\x07"
}
