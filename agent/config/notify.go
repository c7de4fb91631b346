package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Notify is a rule that tells the person what happens in terminals.
type Notify struct {
	// Name is unique among the rules; messages and status name it.
	Name string `toml:"name"`
	// On lists what the person is told: NotifyFailedExit and the other constants.
	On []string `toml:"on" oneof:"failed_exit failed_command long_command new_problem verdict_changed awaiting_input ready pattern away"`
	// LongerThan is for NotifyLongCommand, Pattern for NotifyPattern: RE2, that a line
	// matches.
	LongerThan Duration `toml:"longer_than" range:"1s..168h"`
	Pattern    string   `toml:"pattern"`
	// Terminals has names, in which * stands for any text, and directories, which are
	// absolute or begin with "~/". Without any, the rule is about all terminals.
	Terminals []string `toml:"terminals"`
	Owners    []string `toml:"owners" oneof:"user agent"`
	// To is NotifyDesktop, or the name under which tether notify add has kept a URL.
	To string `toml:"to"`
	// Quiet is a time of the day in which nothing is sent, such as "22:00-07:30", of this
	// machine's clock.
	Quiet string `toml:"quiet"`
	// PerHour bounds the messages; 0 means NotifyPerHour.
	PerHour int `toml:"per_hour" range:"1..1000"`
}

// The words of Notify.On.
const (
	NotifyFailedExit    = "failed_exit"
	NotifyFailedCommand = "failed_command"
	NotifyLongCommand   = "long_command"
	NotifyNewProblem    = "new_problem"
	NotifyVerdict       = "verdict_changed"
	NotifyAwaitingInput = "awaiting_input"
	NotifyReady         = "ready"
	NotifyPattern       = "pattern"
	NotifyAway          = "away" // a paired host, as seen from here
)

// NotifyDesktop in Notify.To is the person's desktop.
const NotifyDesktop = "desktop"

// NotifyPerHour is how many messages an hour a rule sends at most, if it does not say.
const NotifyPerHour = 30

const (
	maxNotify        = 20   // rules
	maxNotifyPattern = 1000 // bytes
)

// notifyProblems returns the faults of the rules.
func (c *Config) notifyProblems() []Problem {
	return tableProblems("notify", "rule", c.Notify, maxNotify, func(n *Notify) string { return n.Name }, (*Notify).problems)
}

// problems returns the faults of one rule.
func (n *Notify) problems(at string) []Problem {
	var all []Problem
	problem := func(key, format string, args ...any) {
		all = append(all, Problem{Key: at + "." + key, Text: fmt.Sprintf(format, args...)})
	}
	named := func(key, name, example string) {
		if name == "" {
			problem(key, `each rule needs one, such as "%s"`, example)
		} else if err := CheckName(name); err != nil {
			problem(key, "%s %v", shown(name), err)
		}
	}
	named("name", n.Name, "failures")
	named("to", n.To, NotifyDesktop)
	if len(n.On) == 0 {
		problem("on", `each rule needs one, such as ["failed_command"]`)
	}
	if long := n.Tells(NotifyLongCommand); long && n.LongerThan == 0 {
		problem("longer_than", `on = ["%s"] needs it, such as "5m"`, NotifyLongCommand)
	} else if !long && n.LongerThan != 0 {
		problem("longer_than", `it counts only with on = ["%s"]`, NotifyLongCommand)
	}
	switch tells := n.Tells(NotifyPattern); {
	case tells && n.Pattern == "":
		problem("pattern", `on = ["%s"] needs it, such as "(?i)out of memory"`, NotifyPattern)
	case !tells && n.Pattern != "":
		problem("pattern", `it counts only with on = ["%s"]`, NotifyPattern)
	case len(n.Pattern) > maxNotifyPattern:
		problem("pattern", "it has %d bytes, at most %d are allowed", len(n.Pattern), maxNotifyPattern)
	default:
		if _, err := regexp.Compile(n.Pattern); err != nil {
			problem("pattern", "%s", printable(err.Error()))
		}
	}
	for _, t := range n.Terminals {
		if strings.ContainsAny(t, `/\`) && t != "~" && !strings.HasPrefix(t, "~/") && !filepath.IsAbs(t) || t == "" {
			problem("terminals", `%s must be a name, where * stands for any text, an absolute path, or begin with "~/"`, shown(t))
		}
	}
	if _, _, err := quietTime(n.Quiet); err != nil {
		problem("quiet", "%s %s", shown(n.Quiet), err)
	}
	return all
}

// Tells reports whether a word is in On.
func (n *Notify) Tells(what string) bool { return slices.Contains(n.On, what) }

// Covers reports whether the rule is about a terminal of an owner ("user" or "agent"),
// with a name, in one of the directories: absolute, under all their names.
func (n *Notify) Covers(owner, name string, dirs []string, home string) bool {
	if len(n.Owners) > 0 && !slices.Contains(n.Owners, owner) {
		return false
	}
	return len(n.Terminals) == 0 || slices.ContainsFunc(n.Terminals, func(t string) bool {
		if t == "~" || strings.HasPrefix(t, "~/") {
			return home != "" && below(dirs, t, home)
		}
		if filepath.IsAbs(t) {
			return below(dirs, t, home)
		}
		return Like(t, name)
	})
}

// Names reports whether the rule names a terminal, without a *.
func (n *Notify) Names(name string) bool { return slices.Contains(n.Terminals, name) }

// Like reports whether s is pattern, in which "*" stands for any text.
func Like(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return s == pattern
	}
	if !strings.HasPrefix(s, first) || !strings.HasSuffix(s[len(first):], last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(s, part)
		if !found {
			return false
		}
		s = after
	}
	return true
}

// quietTime returns the beginning and the end of a quiet time, in minutes of the day.
// Both are 0 for "".
func quietTime(text string) (from, until int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	begin, end, ok := strings.Cut(text, "-")
	a, wrong := time.Parse("15:04", strings.TrimSpace(begin))
	b, wrong2 := time.Parse("15:04", strings.TrimSpace(end))
	if !ok || wrong != nil || wrong2 != nil || a.Equal(b) {
		return 0, 0, fmt.Errorf(`must be two different times of the day, such as "22:00-07:30"`)
	}
	return a.Hour()*60 + a.Minute(), b.Hour()*60 + b.Minute(), nil
}

// QuietUntil returns the end of the quiet time in which t is, in t's zone; false if t is
// in none. Where clocks are put forward over its end, that is the first moment after.
func (n *Notify) QuietUntil(t time.Time) (time.Time, bool) {
	from, until, _ := quietTime(n.Quiet)
	minute := t.Hour()*60 + t.Minute()
	day := t.Day()
	switch {
	case from < until && (minute < from || minute >= until), from > until && minute < from && minute >= until, from == until:
		return t, false
	case from > until && minute >= from:
		day++
	}
	end := time.Date(t.Year(), t.Month(), day, until/60, until%60, 0, 0, t.Location())
	if !end.After(t) { // a time that this day has twice, and t is after the first
		end = t.Truncate(time.Minute).Add(time.Duration(until-minute) * time.Minute)
	}
	return end, true
}

// CheckName returns why a text cannot be the name of a rule or a receiver; nil if it can.
func CheckName(name string) error {
	if name == "" {
		return errors.New("is empty")
	}
	if text := nameProblem(name); text != "" {
		return errors.New(text)
	}
	return nil
}
