package command

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed programs.txt
var programsText string

// program is a row of programs.txt.
type program struct {
	options
	names    int               // words of its name, with the verbs
	known    map[string]bool   // every option
	acts     map[string]string // the effect of an option; "x?" is for an attached value
	operands string
	// The words of the row's second column.
	both, outer, tty, repl, permute, lax, inert, prompt bool
}

// table is parsed when it is needed first. A daemon without agents never needs it.
var table = sync.OnceValues(parsePrograms)

// programs returns the table, by name or by name and verbs.
func programs() map[string]*program {
	all, _ := table()
	return all
}

// canonical returns, by each name of a program, the name under which its verbs are
// listed.
func canonical() map[string]string {
	_, names := table()
	return names
}

func parsePrograms() (all map[string]*program, canon map[string]string) {
	all, canon = map[string]*program{}, map[string]string{}
	for line := range strings.Lines(programsText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.SplitN(line, "|", 3)
		names := namesOf(strings.TrimSpace(columns[0]))
		p := &program{names: len(strings.Fields(names[0])), known: map[string]bool{"help": true, "version": true}, acts: map[string]string{}}
		p.flags = []string{"help", "version"}
		for _, word := range strings.Fields(columns[1]) {
			p.describe(word)
		}
		if !slices.Contains([]string{"cmd", "cmd-after", "line", "lines", "verb"}, p.operands) {
			p.permute = true
		}
		for _, token := range strings.Fields(columns[2]) {
			p.option(token)
		}
		for _, name := range names {
			all[name] = p
			if p.names == 1 && canon[name] == "" {
				canon[name] = names[0]
			}
		}
	}
	return all, canon
}

// namesOf reads "NAME,ALIAS" or "NAME VERB,VERB".
func namesOf(column string) []string {
	var names []string
	prefix := ""
	for i, name := range strings.Split(column, ",") {
		switch at := strings.LastIndexByte(name, ' '); {
		case i == 0 && at >= 0:
			prefix = name[:at+1]
		case at < 0:
			name = prefix + name
		}
		names = append(names, name)
	}
	return names
}

func (p *program) describe(word string) {
	switch word {
	case "both":
		p.both = true
	case "outer":
		p.outer = true
	case "tty":
		p.tty = true
	case "prompt":
		p.prompt = true
	case "repl":
		p.repl = true
	case "permute":
		p.permute = true
	case "lax":
		p.lax = true
	case "inert":
		p.lax, p.inert = true, true
	case "single":
		p.single = true
	case "plus":
		p.plus = true
	case "assigns":
		p.assigns = true
	case "skip1":
		p.skip = 1
	default:
		p.operands = word
	}
}

// option reads a token: -abc, -a:=line, --name?, ….
func (p *program) option(token string) {
	name, act, _ := strings.Cut(token, "=")
	kind := byte(0)
	if last := name[len(name)-1]; last == ':' || last == '?' {
		kind, name = last, name[:len(name)-1]
	}
	suffix := ""
	if kind == '?' {
		suffix = "?"
	}
	if long, ok := strings.CutPrefix(name, "--"); ok || p.single {
		long = strings.TrimLeft(long, "-")
		p.known[long] = true
		switch {
		case kind == ':':
			p.long = append(p.long, long)
		case !slices.Contains(p.flags, long) && !slices.Contains(p.long, long):
			p.flags = append(p.flags, long)
		}
		if act != "" {
			p.acts[long+suffix] = act
		}
		return
	}
	for _, letter := range name[1:] {
		l := string(letter)
		p.known[l] = true
		switch kind {
		case ':':
			p.short += l
		case '?':
			p.maybe += l
		}
		if act != "" {
			p.acts[l+suffix] = act
		}
	}
}

// act returns the effect of the option, "" for none, and whether the option is known.
func (p *program) act(m option) (string, bool) {
	name, plus := strings.CutPrefix(m.name, "+")
	switch {
	case plus && name == "!": // less +!line
		return "code", true
	case plus && p.operands == "verb": // a toolchain of cargo's
		return "", true
	}
	if act, ok := p.acts[name+"?"]; ok && m.value.Text != "" {
		return act, true
	}
	if act, ok := p.acts[name]; ok {
		return act, true
	}
	if p.lax && len(name) > 1 && !p.known[name] { // a name that is cut short, in a row that does not list all names
		for long, act := range p.acts {
			if strings.HasPrefix(long, name) && len(long) > 1 && !p.single {
				return act, true
			}
		}
	}
	return "", p.lax || p.known[name]
}

// Listed reports whether the table has a row for the command and its verb, and that row
// knows all of its options and wants no question about any.
func (c Command) Listed() bool {
	p := verbOf(c, 2)
	if p == nil {
		return false
	}
	met, _ := p.split(c.Words[2:])
	return !slices.ContainsFunc(met, func(m option) bool {
		act, known := p.act(m)
		return !known || act == "ask"
	})
}

// split returns the options and the operands.
func (p *program) split(words []Word) (met []option, operands []Word) {
	met, operands = p.parse(words)
	if !p.permute {
		return met, operands
	}
	rest := operands
	operands = nil
	for len(rest) > 0 {
		operands, rest = append(operands, rest[0]), rest[1:]
		var more []option
		more, rest = p.parse(rest)
		met = append(met, more...)
	}
	return met, operands
}

// open reads the effects of a program of the table. It reports whether the program only
// runs others.
func (p *program) open(r *reader, c Command, in input) bool {
	met, rest := p.split(c.Words[min(p.names, len(c.Words)):])
	r.setBy(met)
	d := effect{reader: r, of: c, in: in}
	for _, m := range met {
		if m.name == "=" {
			continue
		}
		act, known := p.act(m)
		if !known {
			d.finding(Option)
		}
		d.found = d.found || m.name == "help" || m.name == "version"
		d.option(act, m)
	}
	outer := d.operands(p, met, rest)
	if p.lax && p.operands == "" && !p.inert && c.Name() != "git" {
		r.behindDashes(c, in)
	}
	if !d.found && (p.repl || p.tty && len(rest) == 0 || d.wantsTTY && len(rest) == 0) {
		d.interactive()
	}
	return (outer || d.lined && p.outer) && !p.both
}
