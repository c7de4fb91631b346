package display

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/jsonspan"
	"tether/vocab"
)

// NameOf returns a terminal's displayed name: its name, or its id if it has none.
func NameOf(t localapi.Terminal) string { return cmp.Or(t.Name, t.ID) }

// StateOf returns the state of a terminal in words, and the time since which it has this
// state.
func StateOf(t localapi.Terminal) (state string, since time.Time) {
	switch {
	case t.Exit != nil:
		return Ended(t), t.Exit.At
	case t.Input.Awaits():
		return Awaits(t.Input), t.InputSince
	case t.Ready != "":
		return Ready(t.Ready), t.ReadySince
	case !t.Visible:
		return "background", t.Started
	}
	return "running", t.Started
}

// Awaits returns a state of input in words.
func Awaits[S ~string](input S) string { return strings.ReplaceAll(string(input), "_", " ") }

// Ready returns a state of readiness in words.
func Ready[S ~string](ready S) string {
	if vocab.ReadyState(ready) == vocab.ReadyFailed {
		return "not ready"
	}
	return string(ready)
}

// Exit says how a terminal ended.
func Exit(e vocab.Exit) string {
	if e.Signal != "" {
		return "killed " + e.Signal
	}
	return fmt.Sprintf("exited %d", e.Code)
}

// Ended says how a terminal ended that has an exit. A pane whose reader was killed runs
// on.
func Ended(t localapi.Terminal) string {
	if t.Adopted != nil && t.Exit.Signal != "" {
		return "adoption ended"
	}
	return Exit(*t.Exit)
}

// Adopted says for status what a terminal reads, and why.
func Adopted(p localapi.AdoptedPane) string {
	text := Printable(p.Name, 64) + " (" + p.Terminal + "), " + Printable(p.Label(), 120)
	if p.Rule != "" {
		text += ", by the rule that matches " + Printable(p.Rule, 60)
	}
	return text
}

// OwnerOf returns the owner of a terminal: "you", or the agent's name.
func OwnerOf(t localapi.Terminal) string {
	if t.Owner == term.User.String() {
		return "you"
	}
	return Printable(strings.TrimPrefix(t.Owner, "agent "), 24)
}

// shownNames bounds the names of people that a list shows; the list counts the others.
const shownNames = 8

// Command returns a terminal's command line as a list shows it. The URLs on which its
// programs listen stand before it, and whether the port that it was given is missing:
// whoever looks at a list in a narrow window needs them more than the end of the line.
func Command(t localapi.Terminal) string {
	var urls []string
	if t.Adopted != nil && t.Exit == nil {
		urls = append(urls, "["+Printable(t.Adopted.Label(), 80)+"]")
	}
	for _, l := range t.Listening {
		if l.URL != "" && (len(urls) == 0 || urls[len(urls)-1] != l.URL) {
			urls = append(urls, l.URL)
		}
	}
	if len(urls) > maxURLs {
		urls = append(urls[:maxURLs], "…")
	}
	if t.Port != 0 && len(t.Listening) > 0 && !slices.ContainsFunc(t.Listening, func(l localapi.Listening) bool { return l.Port == t.Port }) {
		urls = append([]string{fmt.Sprintf("asked for %d, listens on %s", t.Port, portsOf(t.Listening))}, urls...)
	}
	words := jsonspan.Words(t.Command, t.CommandBytes)
	line := ShellLine(words)
	if t.Adopted != nil { // where one argument ends and the next begins is not known
		line = strings.Join(words, " ")
	}
	return strings.Join(append(urls, Printable(line, MaxCommand)), "  ")
}

// portsOf lists ports in words, each once.
func portsOf(all []localapi.Listening) string {
	var numbers []string
	for _, l := range all {
		if n := strconv.Itoa(l.Port); !slices.Contains(numbers, n) && len(numbers) < maxURLs {
			numbers = append(numbers, n)
		}
	}
	return strings.Join(numbers, ", ")
}

// maxURLs bounds the URLs of a terminal that a list shows.
const maxURLs = 3

// Declared returns the state of a declared terminal in words.
func Declared(d localapi.Declared) string {
	switch {
	case d.State == "waiting":
		return fmt.Sprintf("restarts in %s", Ago(time.Until(d.Next)))
	case d.State == "blocked":
		return "waits: " + Printable(d.Waits, 80)
	case d.State == "running" && d.Ready != "":
		return Ready(d.Ready)
	case d.State == "exited" && d.ExitCode != nil:
		return fmt.Sprintf("exited %d", *d.ExitCode)
	case d.Changed:
		return d.State + ", configuration changed"
	}
	return d.State
}

// Waited describes the condition that ended a wait, on one line.
func Waited(w localapi.Waited) string {
	switch {
	case w.Reason == "pattern":
		return Printable(w.Line, 0)
	case w.Reason == "port" && w.Listener == "another program":
		return w.Address + " is open, but by a program outside this terminal"
	case w.Reason == "port":
		return w.Address + " is open"
	case w.Reason == "url":
		return fmt.Sprintf("HTTP status %d", w.Status)
	case w.Reason == "timeout" && w.Detail != "":
		return "timed out: " + Printable(w.Detail, 0)
	case w.Reason == "exit" && w.Exit != nil:
		return Exit(*w.Exit)
	case w.Reason == "command" && w.Command != nil && w.Command.Exit != nil:
		return fmt.Sprintf("command %d exited %d", w.Command.N, *w.Command.Exit)
	case w.Reason == "command":
		return "no command is running"
	case w.Reason == "timeout":
		return "timed out"
	}
	return w.Reason
}
