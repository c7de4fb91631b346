package policy

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/command"
	"tether/agent/config"
	"tether/agent/term"
)

// rulebook is the configuration in the form in which requests are judged. It does not
// change.
type rulebook struct {
	literal, off bool // block_list is "literal", or "off"
	fallback     Effect
	builtin, acp builtin
	rules        []rule
	identities   []identity
}

// identity holds the special settings of some principals.
type identity struct {
	pattern  string
	fallback Effect // 0 means the rulebook's fallback
	roots    []string
	sandbox  Sandbox
	config   config.PolicyIdentity
}

// newRulebook returns the rules of c, or an error that names everything that is wrong
// with c. home is the directory that "~" stands for.
func newRulebook(c config.Policy, home string) (*rulebook, error) {
	acp, _ := c.Builtin.AtACP() // the configuration has checked it
	b := &rulebook{literal: c.BlockList == "literal", off: c.BlockList == "off", builtin: parseBuiltin(c.Builtin), acp: parseBuiltin(acp)}
	var errs []error
	if err := b.fallback.UnmarshalText([]byte(c.Default)); err != nil {
		errs = append(errs, fmt.Errorf("policy.default: %w", err))
	}
	rules, err := parseRules(c.Rules)
	b.rules, errs = rules, append(errs, err)
	for i, p := range c.Principals {
		id, err := parseIdentity(p, home)
		if err != nil {
			errs = append(errs, fmt.Errorf("policy.principals, number %d (%.40q): %w", i+1, p.Name, err))
		}
		b.identities = append(b.identities, id)
	}
	return b, errors.Join(errs...)
}

func parseIdentity(c config.PolicyIdentity, home string) (identity, error) {
	id := identity{pattern: c.Name, config: c}
	if !strings.HasPrefix(c.Name, "agent:") || c.Name == "agent:" {
		return id, errors.New("name must be agent:NAME, where * stands for any text")
	}
	if c.Default != "" {
		if err := id.fallback.UnmarshalText([]byte(c.Default)); err != nil {
			return id, fmt.Errorf("default: %w", err)
		}
	}
	for _, dir := range c.Roots {
		root, err := expandHome(dir, home)
		if err != nil {
			return id, fmt.Errorf("roots: %w", err)
		}
		id.roots = append(id.roots, resolved(root))
	}
	id.sandbox = Sandbox{Kind: c.Sandbox, Roots: id.roots, NoNetwork: c.Network == "none"}
	if c.Sandbox == "none" {
		id.sandbox.Kind = ""
	}
	for _, grant := range []struct {
		key  string
		from []string
		to   *[]string
	}{{"writable", c.Writable, &id.sandbox.Writable}, {"readable", c.Readable, &id.sandbox.Readable}, {"sockets", c.Sockets, &id.sandbox.Sockets}} {
		for _, dir := range grant.from {
			path, err := expandHome(dir, home)
			if err != nil {
				return id, fmt.Errorf("%s: %w", grant.key, err)
			}
			*grant.to = append(*grant.to, path)
		}
	}
	if (id.sandbox.NoNetwork || len(c.Readable)+len(c.Sockets) > 0) && id.sandbox.Kind == "" {
		return id, errors.New("network, readable and sockets need a sandbox")
	}
	return id, nil
}

// expandHome returns dir as an absolute path.
func expandHome(dir, home string) (string, error) {
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
		dir = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%.80q must be an absolute path or begin with ~/", dir)
	}
	return filepath.Clean(dir), nil
}

// resolved returns the path with links followed in the part of it that exists.
func resolved(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// identityOf returns the actor's special settings: the first entry that matches.
func (b *rulebook) identityOf(a term.Actor) identity {
	for _, id := range b.identities {
		if config.Like(id.pattern, subject(a)) {
			return id
		}
	}
	return identity{}
}

// check returns the decision of the rules about a request.
func (b *rulebook) check(r Request) Decision {
	switch {
	case r.Actor.Role == term.RoleUser:
		return b.checkUser(r)
	case r.Actor.Role != term.RoleAgent:
		return Decision{Deny, ruleDefault, fmt.Sprintf("%s may not run anything here", r.Actor)}
	case len(r.Argv) == 0 && r.Line == "":
		return Decision{Deny, ruleUnparsed, "no command was given"}
	case len(r.Argv) > 0 && r.Line != "":
		return Decision{Deny, ruleUnparsed, "both an argv and a line were given"}
	}
	var j judgement
	read := Read(r)
	b.onRoots(&j, r, read)
	for _, c := range read.Outer {
		j.add(b.onCommand(r, c, true))
	}
	unspoken := len(read.Commands) == 0
	for _, c := range read.Commands {
		d := b.onCommand(r, c, false)
		unspoken = unspoken || d.Effect == 0
		j.add(d)
	}
	if !b.off {
		b.onReading(&j, r, read)
	}
	if unspoken {
		j.add(Decision{b.fallbackFor(r.Actor), ruleDefault, "no rule matches"})
	}
	return j.Decision
}

// fallbackFor returns the effect for a command that no rule covers. For an agent at a
// host it is Ask or stricter, unless the person has set a default for agents at hosts (a
// pattern with "/"): older settings for agents meant the agents that work here.
func (b *rulebook) fallbackFor(a term.Actor) Effect {
	id := b.identityOf(a)
	effect := cmp.Or(id.fallback, b.fallback)
	if a.At() != "" && !(id.fallback != 0 && strings.Contains(id.pattern, "/")) {
		return max(effect, Ask)
	}
	return effect
}

// judgement is the strictest of the added decisions; among equally strict ones, the
// first.
type judgement struct{ Decision }

func (j *judgement) add(all ...Decision) {
	for _, d := range all {
		if d.Effect > j.Effect {
			j.Decision = d
		}
	}
}

// checkUser applies only the rules that name the user: the person at this machine needs
// no permission otherwise.
func (b *rulebook) checkUser(r Request) Decision {
	j := judgement{Decision{Allow, ruleUser, "the user at this machine"}}
	if !slices.ContainsFunc(b.rules, func(x rule) bool { return x.concerns(r.Actor, r.Door) }) {
		return j.Decision
	}
	read := Read(r)
	for _, c := range slices.Concat(read.Commands, read.Outer) {
		j.add(b.ownRules(r, c, false))
	}
	return j.Decision
}

// Read returns the rules' view of the request's command.
func Read(r Request) *command.Reading {
	if r.Line == "" {
		return command.Argv(r.Argv)
	}
	if r.Shell != "" && !command.IsShell(r.Shell) {
		return &command.Reading{Findings: []command.Finding{{Kind: command.Unparsed, Text: "the line is for " + brief(r.Shell)}}}
	}
	return command.Line(r.Line)
}

// ownRules returns the strictest decision of the person's rules about the command, zero
// if none covers it.
func (b *rulebook) ownRules(r Request, c command.Command, outer bool) Decision {
	var j judgement
	for i := range b.rules {
		if x := &b.rules[i]; x.concerns(r.Actor, r.Door) {
			j.add(x.decide(x.effectOn(c, outer)))
		}
	}
	return j.Decision
}

// onCommand judges one command: the person's rules come before the built-in ones. The
// zero decision means that no rule covers it.
func (b *rulebook) onCommand(r Request, c command.Command, outer bool) Decision {
	own := b.ownRules(r, c, outer)
	if own.Effect != 0 || b.off {
		return own
	}
	var j judgement
	j.add(b.at(r.Door).onCommand(c, outer)...)
	return j.Decision
}

// onReading judges the request as a whole, apart from its commands.
func (b *rulebook) onReading(j *judgement, r Request, read *command.Reading) {
	at := b.at(r.Door)
	for _, f := range read.Findings {
		if !b.known(r, f) {
			j.add(at.onFinding(f))
		}
	}
	j.add(at.onSettings(read.Sets, r)...)
	if slices.ContainsFunc(read.Commands, func(c command.Command) bool {
		return c.Name() == "tether" && !printsHelp(c) && b.ownRules(r, c, false).Effect == 0
	}) {
		j.add(at.onTetherCaller(r, read)...)
	}
	left := slices.IndexFunc(read.Moves, func(w command.Word) bool {
		return !w.Fixed || strings.HasPrefix(w.Text, "~") || w.Text == "-" || !within(absolute(w.Text, r.Cwd), r.Cwd)
	})
	moved := func(f command.File) bool { return left >= 0 && left < f.Moves }
	for _, f := range read.Writes {
		j.add(at.onWrite(f.Name, r.Cwd, moved(f))...)
	}
	for _, f := range read.Files {
		if b.ownRules(r, f.By, false).Effect == 0 {
			j.add(at.onWrite(f.Name, r.Cwd, moved(f))...)
		}
	}
	if len(r.Argv) > 0 && read.Lines == 0 {
		j.add(at.asLine(r)...)
	}
	if b.literal {
		j.add(at.onText(r)...)
	}
}

// known reports whether the finding is in a command that one of the person's rules
// covers: the person then knows that it runs code.
func (b *rulebook) known(r Request, f command.Finding) bool {
	switch f.Kind {
	case command.InlineCode, command.Script, command.Interactive, command.Option, command.Destroys:
		return b.ownRules(r, f.Command, false).Effect != 0
	}
	return false
}

// onRoots judges, for a principal with roots, the directory in which the command starts
// and those to which its line changes.
func (b *rulebook) onRoots(j *judgement, r Request, read *command.Reading) {
	roots := b.identityOf(r.Actor).roots
	if len(roots) == 0 {
		return
	}
	inside := func(dir string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return within(dir, root) })
	}
	if dir := resolved(r.Cwd); !filepath.IsAbs(r.Cwd) || !inside(dir) {
		j.add(Decision{Deny, ruleRoots, fmt.Sprintf("%s may not run commands in %s", r.Actor, brief(dir))})
	}
	for _, w := range read.Moves {
		switch dir := resolved(absolute(w.Text, r.Cwd)); {
		case !w.Fixed:
			j.add(Decision{Ask, ruleRoots, "it changes to a directory that is only known when it runs: " + brief(w.Text)})
		case strings.HasPrefix(w.Text, "~"), w.Text == "-", !inside(dir):
			j.add(Decision{Deny, ruleRoots, fmt.Sprintf("%s may not run commands in %s", r.Actor, brief(w.Text))})
		}
	}
}

// absolute returns path as seen from cwd. A path that begins with a slash is absolute on
// Windows, too: there a shell of MSYS2 reads it, for which /dev/sda is a disk.
func absolute(path, cwd string) string {
	if strings.HasPrefix(path, "/") {
		return filepath.ToSlash(filepath.Clean(path))
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cwd, path)
}

// at returns the effects of the built-in rules at a door.
func (b *rulebook) at(door string) builtin {
	if door == DoorACP {
		return b.acp
	}
	return b.builtin
}
