package policy

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/command"
	"tether/agent/config"
	"tether/internal/clip"
	"tether/internal/lazyregexp"
)

// Blocked is the reason given for requests that the block list denies, word for word as
// in the document of the block list that agents know. A question gives the rule's reason
// instead.
const Blocked = "Command blocked for security reasons"

// The built-in rules, by the names that they have in the configuration and in decisions.
const (
	ruleCommands     = "builtin.commands"
	rulePatterns     = "builtin.patterns"
	ruleSubstitution = "builtin.substitution"
	ruleUnparsed     = "builtin.unparsed"
	ruleDynamic      = "builtin.dynamic"
	ruleCode         = "builtin.code"
	ruleScript       = "builtin.script"
	ruleInteractive  = "builtin.interactive"
	ruleOptions      = "builtin.options"
	ruleDestructive  = "builtin.destructive"
	ruleElevation    = "builtin.elevation"
	ruleEnvironment  = "builtin.environment"
	ruleFiles        = "builtin.files"
	ruleTether       = "builtin.tether"
	ruleRoots        = "roots"
	ruleDefault      = "default"
	ruleUser         = "user"
)

// blockedCommands is the block list's own list of commands.
var blockedCommands = []string{"rm", "sudo", "chmod", "chown", "mkfs", "dd", "fdisk", "shutdown", "reboot", "halt", "poweroff",
	"kill", "killall", "pkill"}

// builtin holds the effects of the built-in rules at one door, by rule.
type builtin map[string]Effect

func parseBuiltin(c config.PolicyBuiltin) builtin {
	b := builtin{}
	for rule, text := range map[string]string{
		ruleCommands: c.Commands, rulePatterns: c.Patterns, ruleSubstitution: c.Substitution, ruleUnparsed: c.Unparsed,
		ruleDynamic: c.Dynamic, ruleCode: c.Code, ruleScript: c.Script, ruleInteractive: c.Interactive, ruleOptions: c.Options, ruleDestructive: c.Destructive,
		ruleElevation: c.Elevation, ruleEnvironment: c.Environment, ruleFiles: c.Files, ruleTether: c.Tether,
	} {
		var e Effect
		if e.UnmarshalText([]byte(text)) != nil {
			e = Deny // the configuration has checked it
		}
		b[rule] = e
	}
	return b
}

func (b builtin) decide(rule, format string, args ...any) Decision {
	return Decision{b[rule], rule, fmt.Sprintf(format, args...)}
}

// blocked is decide for a rule of the block list, whose denials all have the reason
// Blocked.
func (b builtin) blocked(rule, format string, args ...any) Decision {
	if b[rule] == Deny {
		return Decision{Deny, rule, Blocked}
	}
	return b.decide(rule, format, args...)
}

// onCommand judges one command by its words. outer says that the command only runs
// another command.
func (b builtin) onCommand(c command.Command, outer bool) []Decision {
	name := c.Name()
	var all []Decision
	if slices.Contains(blockedCommands, name) || strings.HasPrefix(name, "mkfs.") {
		all = append(all, b.blocked(ruleCommands, "%s: %s is on the block list", brief(c.String()), brief(name)))
	}
	all = append(all, b.onTether(c)...)
	for _, group := range ownLists {
		for _, p := range group.patterns {
			if p.fits(c, false) != unlike {
				all = append(all, b.decide(group.rule, "%s %s", brief(c.String()), group.what))
				break
			}
		}
	}
	if !outer && len(all) == 0 && c.Words[0].Fixed && strings.ContainsAny(c.Words[0].Text, "\n\x00") {
		all = append(all, b.decide(ruleUnparsed, "the name of the program has control characters"))
	}
	return all
}

var evalWord = lazyregexp.New(`\beval\b`)

// onFinding judges one of the reader's findings.
func (b builtin) onFinding(f command.Finding) Decision {
	switch f.Kind {
	case command.Substitution:
		return b.blocked(ruleSubstitution, "%s: the output of a command becomes part of the line", f.Text)
	case command.PipeToShell:
		return b.blocked(rulePatterns, "%s: a shell runs what another command prints", f.Text)
	case command.Eval:
		return b.blocked(rulePatterns, "%s runs text as a command", f.Text)
	case command.InlineCode:
		if evalWord().MatchString(f.Text) {
			return b.blocked(rulePatterns, "%s: its code runs text as a command (eval)", f.Text)
		}
		return b.decide(ruleCode, "%s runs code that nobody has reviewed", f.Text)
	case command.Script:
		return b.decide(ruleScript, "%s runs a script that nobody has reviewed", f.Text)
	case command.Interactive:
		return b.decide(ruleInteractive, "%s is interactive: input to it runs unchecked", f.Text)
	case command.Option:
		return b.decide(ruleOptions, "%s: an option may run a command", f.Text)
	case command.Destroys:
		return b.decide(ruleDestructive, "%s destroys files or work", f.Text)
	case command.Dynamic:
		return b.decide(ruleDynamic, "%s: the command is only known when it runs", f.Text)
	}
	return b.decide(ruleUnparsed, "this command cannot be parsed: %s", f.Text)
}

// onWrite judges writing to the file, as seen from cwd. moved says that the line may have
// changed before to a directory that is not below cwd.
func (b builtin) onWrite(file command.Word, cwd string, moved bool) []Decision {
	if !file.Fixed {
		return []Decision{b.decide(ruleFiles, "it writes to a file whose name is only known when it runs: %s", brief(file.Text))}
	}
	path := absolute(file.Text, cwd)
	outside := func() []Decision {
		return []Decision{b.decide(ruleFiles, "it writes to %s, outside its directory", brief(file.Text))}
	}
	switch {
	case strings.HasPrefix(file.Text, "~"): // even if cwd is in /tmp
		return outside()
	case moved && !strings.HasPrefix(file.Text, "/") && !filepath.IsAbs(file.Text):
		return outside() // wherever that is: also where its directory is in /tmp
	case strings.HasPrefix(path, "/dev/") && !harmlessDevice().MatchString(path):
		return []Decision{b.blocked(rulePatterns, "it writes to the device %s", brief(path))}
	case strings.HasPrefix(path, "/dev/"), within(path, "/tmp"), within(path, "/var/tmp"):
		return nil
	case cwd == "", !within(path, cwd):
		return outside()
	}
	return nil
}

var harmlessDevice = lazyregexp.New(`^/dev/(null|zero|full|tty|stdout|stderr|fd/[0-9]+)$`)

// asLine judges the words of an argv as if they were a shell line. They are executed as
// an argv, where "|" or "$(id)" have no special meaning; an agent that sends these
// probably meant a line.
func (b builtin) asLine(r Request) []Decision {
	meant := func(w string) bool {
		return strings.Contains(w, "`") || strings.Contains(w, "$(") || slices.Contains([]string{"|", "|&", ">", ">>", ">|", "&>", "<("}, w)
	}
	if !slices.ContainsFunc(r.Argv, meant) {
		return nil
	}
	read := command.Line(strings.Join(r.Argv, " "))
	var all []Decision
	for _, f := range read.Findings {
		switch f.Kind {
		case command.Substitution, command.PipeToShell, command.Eval:
			all = append(all, b.onFinding(f))
		case command.Unparsed:
			all = append(all, b.blocked(ruleSubstitution, "its arguments contain shell operators that cannot be parsed: %s", f.Text))
		}
	}
	for _, f := range read.Writes {
		if f.Name.Fixed && strings.HasPrefix(absolute(f.Name.Text, r.Cwd), "/dev/") {
			all = append(all, b.onWrite(f.Name, r.Cwd, false)...)
		}
	}
	for _, c := range read.Commands {
		if slices.Contains(blockedCommands, c.Name()) {
			all = append(all, b.blocked(ruleCommands, "%s: %s is on the block list", brief(c.String()), brief(c.Name())))
		}
	}
	return all
}

// blockedPatterns is the block list's own list of patterns.
var blockedPatterns = []string{"rm -rf /", "> /dev/", "| sh", "| bash", "eval", "`", "$("}

// onText applies the block list literally: its commands to the first word, its patterns
// to any part of the text.
func (b builtin) onText(r Request) []Decision {
	text := cmp.Or(r.Line, strings.Join(r.Argv, " "))
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if slices.Contains(blockedCommands, first) {
		return []Decision{b.blocked(ruleCommands, "%s is on the block list", brief(first))}
	}
	for _, p := range blockedPatterns {
		if strings.Contains(text, p) {
			return []Decision{b.blocked(rulePatterns, "it contains %q, which is on the block list", p)}
		}
	}
	return nil
}

// brief cuts text of a request so that it is short enough for a sentence.
func brief(s string) string { return clip.Marked(s, 120) }
