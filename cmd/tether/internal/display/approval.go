package display

import (
	"cmp"
	"fmt"
	"strings"

	"tether/agent/localapi"
	"tether/internal/jsonspan"
)

// ApprovalLine returns the requested command as a person would type it.
func ApprovalLine(x localapi.Approval) string {
	if x.Line != "" {
		return x.Line
	}
	return ShellLine(jsonspan.Words(x.Argv, x.ArgvBytes))
}

// MaxShown is the bound for Approval where a question must fit a screen, in bytes. tether
// approvals ID shows the whole command.
const MaxShown = 8 << 10

// Approval describes a request in full: one string per line, so that nothing can hide in
// a long command. most bounds the shown part of the command, in bytes; 0 means no bound.
func Approval(x localapi.Approval, most int) []string {
	lines := []string{fmt.Sprintf("%s  %s, %s wants to run in %s:", x.ID, x.State, Printable(cmp.Or(x.Who, x.Actor), 160), Printable(Text(x.Cwd, x.CwdBytes), 0))}
	if x.Setting {
		lines[0] = fmt.Sprintf("%s  %s, the configuration in %s has changed:", x.ID, x.State, Printable(Text(x.Cwd, x.CwdBytes), 0))
	}
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

// Settings lists the variables and scripts that also determine the effect of the command,
// one line each.
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

// ApprovalBell returns the bytes that ring the person's terminal and, if the terminal
// supports notifications (OSC 9), say which command an agent requests. The daemon has
// masked secrets in the summary, because the terminal passes it to the desktop, where
// others may see it and programs may store it.
func ApprovalBell(q localapi.Approval) string {
	return "\x1b]9;tether: " + Printable(q.Summary, 300) + "\x07\x07"
}
