package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tether/ahp"
)

// Declared is a terminal that the daemon starts by itself and keeps up.
type Declared struct {
	// Name is unique among the declared ones; commands take it.
	Name string `toml:"name"`
	// Command is the argv, or Line a line for the system's shell. One of both is there.
	Command []string `toml:"command"`
	Line    string   `toml:"line"`
	// Cwd is an absolute directory, or one below the home directory: "~/src". "" means
	// the home directory.
	Cwd string `toml:"cwd"`
	// Env is added to the environment of a login, NAME=value.
	Env []string `toml:"env"`
	// Restart says whether the daemon starts the terminal again when it has ended: never
	// (""), on-failure or always.
	Restart string `toml:"restart" oneof:"never on-failure always"`
	// Lend names the hosts that see it. Nil means the same hosts as for any terminal of
	// the person's, an empty list none.
	Lend []string `toml:"lend"`
	// Audience lists who else may watch it at the hosts, besides the owner of this
	// machine there, in the words of tether lend --to.
	Audience []string `toml:"audience"`
	Private  bool     `toml:"private"`
	// ForwardBrowser sets what makes its dev server print errors of the page, see
	// localapi.SpawnRequest.
	ForwardBrowser bool `toml:"forward_browser"`
	// Port is the TCP port that the terminal gets; AutoPort stands for a free one.
	Port Port `toml:"port" range:"1..65535" oneof:"auto"`
	// Ports are open to those at the hosts of Lend who may watch, for reading; AutoPort
	// stands for those on which its programs will listen.
	Ports []Port `toml:"ports" range:"1024..65535" oneof:"auto"`
	// Needs names declared terminals that must be ready before this one starts.
	Needs []string `toml:"needs"`
	// Agents lists what agents on this machine may do with it: AgentsRestart.
	Agents []string `toml:"agents" oneof:"restart"`
	Ready  Ready    `toml:"ready"`
}

// AgentsRestart in Declared.Agents lets agents restart the terminal.
const AgentsRestart = "restart"

// LetsAgents reports whether agents may do this (AgentsRestart) with the terminal.
func (d *Declared) LetsAgents(do string) bool { return slices.Contains(d.Agents, do) }

// The words of Restart.
const (
	RestartNever     = "never"
	RestartOnFailure = "on-failure"
	RestartAlways    = "always"
)

const (
	maxDeclared     = 100 // terminals
	maxDeclaredName = 64  // bytes
)

// declaredProblems returns the faults of the declared terminals.
func (c *Config) declaredProblems() []Problem {
	all := tableProblems("terminal", "terminal", c.Terminal, maxDeclared, func(d *Declared) string { return d.Name }, (*Declared).problems)
	return append(all, c.needProblems()...)
}

// tableProblems returns the faults of a list of tables, of which there are at most most,
// each with a name of its own: those that faults returns for the key of each, and names
// that come again. word says what a table is.
func tableProblems[T any](key, word string, tables []T, most int, name func(*T) string, faults func(table *T, at string) []Problem) []Problem {
	var all []Problem
	if len(tables) > most {
		all = append(all, Problem{Key: key + "." + strconv.Itoa(most), Text: fmt.Sprintf("there may be at most %d", most)})
	}
	first := map[string]int{} // number, from 1, by name
	for i := range tables {
		at, own := key+"."+strconv.Itoa(i), name(&tables[i])
		all = append(all, faults(&tables[i], at)...)
		if n := first[own]; n > 0 && own != "" {
			all = append(all, Problem{Key: at + ".name", Text: fmt.Sprintf("%s is the name of the %s number %d already", shown(own), word, n)})
			continue
		}
		first[own] = i + 1
	}
	return all
}

// problems returns the faults of one of them.
func (d *Declared) problems(at string) []Problem {
	var all []Problem
	problem := func(key, format string, args ...any) {
		all = append(all, Problem{Key: at + "." + key, Text: fmt.Sprintf(format, args...)})
	}
	if d.Name == "" {
		problem("name", `each terminal needs one, such as "web"`)
	} else if text := nameProblem(d.Name); text != "" {
		problem("name", "%s %s", shown(d.Name), text)
	}
	switch {
	case d.Line != "" && len(d.Command) > 0:
		problem("line", "give either a command or a line")
	case d.Line == "" && (len(d.Command) == 0 || d.Command[0] == ""):
		problem("command", `what runs is missing: command = ["npm", "run", "dev"], or line = "npm run dev" for a shell`)
	}
	if d.Cwd != "" && d.Cwd != "~" && !strings.HasPrefix(d.Cwd, "~/") && !filepath.IsAbs(d.Cwd) {
		problem("cwd", `%s must be an absolute path or begin with "~/"`, shown(d.Cwd))
	}
	for _, e := range d.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			problem("env", "an entry is not of the form NAME=value") // without it: it may be a secret
		}
	}
	if d.Private && len(d.Lend) > 0 {
		problem("lend", "a private terminal is lent to nobody")
	}
	if d.Private && len(d.Audience) > 0 {
		problem("audience", "a private terminal is lent to nobody")
	}
	if len(d.Audience) > ahp.MaxGrants {
		problem("audience", "there may be at most %d names", ahp.MaxGrants)
	}
	for _, name := range d.Audience {
		if err := ahp.CheckAudienceName(name, false); err != nil {
			problem("audience", "%s", printable(err.Error()))
		}
	}
	if len(d.Ports) > 0 && len(d.Lend) == 0 {
		problem("ports", `name the hosts whose users may fetch from them beside it: lend = ["NAME"]`)
	}
	if len(d.Ports) > ahp.MaxLentPorts {
		problem("ports", "there may be at most %d", ahp.MaxLentPorts)
	}
	for i, port := range d.Ports {
		if slices.Contains(d.Ports[:i], port) {
			problem("ports", "%s is there twice", port)
		}
	}
	if d.Private && len(d.Agents) > 0 {
		problem("agents", "a private terminal is hidden from agents")
	}
	given := d.At(somePort)
	if err := given.Ready.check(); err != nil {
		problem("ready", "%s", printable(err.Error()))
	} else if d.Port == 0 && given.Ready.String() != d.Ready.String() {
		problem("ready", `{port} needs port = "auto" or a number beside it`)
	}
	if text := strings.Join(slices.Concat([]string{d.Line, d.Cwd}, d.Command, d.Env, d.Ready.Command), ""); strings.ContainsRune(text, 0) {
		problem("command", "a NUL byte is in its values")
	}
	return all
}

// nameProblem returns why a text cannot be a terminal's name, which must be a word of a
// command line.
func nameProblem(name string) string {
	switch {
	case name == "." || name == "..":
		return "cannot be a name; choose another"
	case len(name) > maxDeclaredName:
		return fmt.Sprintf("is longer than %d bytes", maxDeclaredName)
	case name[0] == '-' || strings.HasPrefix(name, "pty-"):
		return `must begin neither with "-" nor, as an id does, with "pty-"`
	case strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@-") != "":
		return "must be of A-Z a-z 0-9 . _ : @ -"
	}
	return ""
}
