package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tether/internal/loopback"
)

// Ready says when a declared terminal is ready. At most one of the conditions is there;
// without any, it is ready when it runs.
type Ready struct {
	Port    Port     `toml:"port" range:"1..65535" oneof:"{port}"` // a program of the terminal listens on it; GivenPort is Declared.Port
	Pattern string   `toml:"pattern"`                              // RE2, that a line matches
	HTTP    string   `toml:"http"`                                 // URL of this machine that answers with status 200
	Command []string `toml:"command"`                              // argv of a program that exits with status 0
	// Timeout bounds the time from the start until the terminal is ready; 0 means
	// ReadyTimeout.
	Timeout Duration `toml:"timeout" range:"1s..1h"`
}

// ReadyTimeout is how long a terminal may take to become ready.
const ReadyTimeout = 2 * time.Minute

// Bounds of a condition, in bytes.
const (
	maxReadyPattern = 1000
	maxReadyURL     = 2000
)

// IsZero reports whether there is no condition.
func (r *Ready) IsZero() bool {
	return r.Port == 0 && r.Pattern == "" && r.HTTP == "" && r.Command == nil
}

// Within returns how long the terminal may take to become ready.
func (r *Ready) Within() time.Duration {
	if r.Timeout == 0 {
		return ReadyTimeout
	}
	return time.Duration(r.Timeout)
}

// String returns the condition in words, in one line, to follow "it is ready when".
func (r *Ready) String() string {
	switch {
	case r.Port != 0:
		return "it listens on port " + r.Port.String()
	case r.Pattern != "":
		return "a line matches " + strconv.Quote(r.Pattern)
	case r.HTTP != "":
		return r.HTTP + " answers 200"
	case len(r.Command) > 0:
		return brief(r.Command[0]) + " exits 0"
	}
	return "it runs"
}

func (r *Ready) check() error {
	n := 0
	for _, there := range []bool{r.Port != 0, r.Pattern != "", r.HTTP != "", r.Command != nil} {
		if there {
			n++
		}
	}
	switch {
	case n > 1:
		return errors.New("give one of port, pattern, http and command")
	case n == 0 && r.Timeout != 0:
		return errors.New("timeout needs a condition: port, pattern, http or command")
	case r.Command != nil && (len(r.Command) == 0 || r.Command[0] == ""):
		return errors.New(`command names no program; write command = ["pg_isready", "-q"]`)
	case len(r.Pattern) > maxReadyPattern:
		return fmt.Errorf("pattern has %d bytes, at most %d are allowed", len(r.Pattern), maxReadyPattern)
	case r.HTTP != "":
		return checkReadyURL(r.HTTP)
	}
	if _, err := regexp.Compile(r.Pattern); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	return nil
}

// checkReadyURL accepts only URLs of this machine, because the daemon sends requests to
// it.
func checkReadyURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxReadyURL:
		return fmt.Errorf("http has %d bytes, at most %d are allowed", len(text), maxReadyURL)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
		return fmt.Errorf("http: %s is no URL such as http://localhost:5173/", shown(text))
	}
	host := u.Hostname()
	if !strings.HasSuffix(host, ".localhost") && !loopback.Is(host) {
		return fmt.Errorf("http: %s is not this machine; name localhost or 127.0.0.1", shown(host))
	}
	return nil
}

// needProblems returns the faults in the needs of declared terminals: names that are not
// declared, and cycles.
func (c *Config) needProblems() (all []Problem) {
	g := needs{of: map[string][]string{}, done: map[string]bool{}}
	for i := range c.Terminal {
		g.of[c.Terminal[i].Name] = c.Terminal[i].Needs
	}
	for i := range c.Terminal {
		d, at := &c.Terminal[i], "terminal."+strconv.Itoa(i)+".needs"
		for _, name := range d.Needs {
			if _, declared := g.of[name]; !declared {
				all = append(all, Problem{Key: at, Text: fmt.Sprintf("no terminal %s is declared", shown(name))})
			}
		}
		if cycle := g.cycle(d.Name); cycle != nil {
			all = append(all, Problem{Key: at, Text: "they need each other, so that none could start: " + printable(strings.Join(cycle, " needs "))})
		}
	}
	return all
}

// needs maps each name to the names that it needs. Each is visited once.
type needs struct {
	of   map[string][]string
	done map[string]bool
	way  []string // names that are being visited
}

// cycle returns a path from a name back to itself, where the name is from or one that it
// needs; nil if there is none that was not returned before.
func (g *needs) cycle(from string) []string {
	if i := slices.Index(g.way, from); i >= 0 {
		return append(slices.Clone(g.way[i:]), from)
	}
	if g.done[from] {
		return nil
	}
	g.way = append(g.way, from)
	defer func() { g.way, g.done[from] = g.way[:len(g.way)-1], true }()
	for _, next := range g.of[from] {
		if cycle := g.cycle(next); cycle != nil {
			return cycle
		}
	}
	return nil
}
