package config

import (
	"regexp"
	"strconv"
)

// Adopt is a rule that adopts panes of other programs by itself.
type Adopt struct {
	// Tmux says that the rule is about panes of tmux. It must be true: there is no other
	// kind of rule yet.
	Tmux bool `toml:"tmux"`
	// Match is RE2, of which a match must be in the command line of the pane's program in
	// the foreground.
	Match string `toml:"match"`
}

const (
	maxAdopt      = 20   // rules
	maxAdoptMatch = 1000 // bytes
)

// adoptProblems returns the faults of the rules.
func (c *Config) adoptProblems() (all []Problem) {
	problem := func(i int, key, text string) {
		all = append(all, Problem{Key: "adopt." + strconv.Itoa(i) + key, Text: text})
	}
	if len(c.Adopt) > maxAdopt {
		problem(maxAdopt, "", "there may be at most "+strconv.Itoa(maxAdopt))
	}
	for i, r := range c.Adopt {
		if !r.Tmux {
			problem(i, ".tmux", "each rule says whose panes it is about: tmux = true")
		}
		re, err := regexp.Compile(r.Match)
		switch {
		case r.Match == "":
			problem(i, ".match", `each rule needs one, such as "npm|vite|next|cargo watch"`)
		case len(r.Match) > maxAdoptMatch:
			problem(i, ".match", "it has more than "+strconv.Itoa(maxAdoptMatch)+" bytes")
		case err != nil:
			problem(i, ".match", printable(err.Error()))
		case re.MatchString(""):
			problem(i, ".match", "it fits the empty text, and so every pane: name the programs")
		}
	}
	return all
}
