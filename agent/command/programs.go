package command

import "strings"

// openFind looks for what find runs; what it deletes is for the rules.
func openFind(r *reader, c Command, in input) bool {
	for i, w := range c.Words {
		switch w.Text {
		case "-exec", "-execdir", "-ok", "-okdir":
			rest := c.Words[i+1:]
			for n, end := range rest {
				if end.Text == ";" || end.Text == "+" {
					rest = rest[:n]
					break
				}
			}
			if len(rest) > 0 {
				r.command(rest, in)
			}
		}
	}
	return false
}

func openFd(r *reader, c Command, in input) bool {
	for i, w := range c.Words {
		switch w.Text {
		case "-x", "-X", "--exec", "--exec-batch":
			if rest := c.Words[i+1:]; len(rest) > 0 {
				r.command(rest, in)
			}
		}
	}
	return false
}

// openSSH reads the line for the shell on the other side.
func openSSH(r *reader, c Command, _ input) bool {
	o := options{short: "BbcDEeFIiJLlmOoPpQRSWw", skip: 1}
	met, rest := o.parse(c.Words[1:])
	for _, m := range met {
		if name := strings.ToLower(m.value.Text); m.name == "o" && (strings.HasPrefix(name, "proxycommand") || strings.HasPrefix(name, "localcommand")) {
			_, line, _ := strings.Cut(m.value.Text, "=")
			r.lineIn(Word{line, m.value.Fixed}, input{})
		}
	}
	r.joined(rest, input{})
	return false
}

// openGit takes git's own options away, so that rules find the verb.
func openGit(r *reader, c Command, in input) bool {
	o := options{short: "Cc", long: []string{"git-dir", "work-tree", "namespace", "super-prefix", "config-env", "exec-path"}}
	met, rest := o.parse(c.Words[1:])
	for _, m := range met {
		if m.name == "c" && runsCode(m.value) || m.name == "config-env" || m.name == "exec-path" && m.value != (Word{}) {
			r.out.findIn(InlineCode, c)
			break
		}
	}
	if len(met) == 0 || len(rest) == 0 {
		return false
	}
	r.command(append([]Word{c.Words[0]}, rest...), in)
	return true
}

// runsCode reports whether a setting of git's may name a program.
func runsCode(setting Word) bool {
	name, value, _ := strings.Cut(strings.ToLower(setting.Text), "=")
	if !setting.Fixed || strings.HasPrefix(value, "!") {
		return true
	}
	for _, part := range []string{"pager", "editor", "command", "cmd", "program", "helper", "hookspath", "textconv", "driver", "filter.",
		"alias.", "fsmonitor", "proxy", "askpass", "external", "ext.", "include"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// openAwk finds programs of awk's that run commands or write files.
func openAwk(r *reader, c Command, _ input) bool {
	_, rest := options{short: "FvfEi", long: []string{"file", "exec", "include", "field-separator", "assign"}}.parse(c.Words[1:])
	if len(rest) > 0 && (!rest[0].Fixed || strings.Contains(rest[0].Text, "system") || strings.ContainsAny(rest[0].Text, "|>@")) {
		r.out.findIn(InlineCode, c)
	}
	return false
}

// runners run their operands as a command after one of these verbs.
var runners = map[string]map[string]options{
	"npm":    {"exec": {short: "c", long: []string{"call", "package"}}, "x": {short: "c", long: []string{"call", "package"}}},
	"pnpm":   {"exec": {}, "dlx": {long: []string{"package"}}},
	"yarn":   {"exec": {}, "dlx": {short: "p", long: []string{"package"}}},
	"bun":    {"x": {}},
	"uv":     {"run": {short: "p", long: []string{"with", "python", "project", "directory", "env-file", "extra", "group"}}},
	"poetry": {"run": {}}, "pipenv": {"run": {}}, "pdm": {"run": {}}, "hatch": {"run": {}}, "rye": {"run": {}},
	"bundle": {"exec": {}}, "mise": {"exec": {}, "x": {}}, "asdf": {"exec": {}}, "direnv": {"exec": {skip: 1}},
	"dotenvx": {"run": {short: "f", long: []string{"env-file"}}},
}

func openRunner(verbs map[string]options) opener {
	return func(r *reader, c Command, in input) bool {
		if len(c.Words) < 2 || !c.Words[1].Fixed {
			return false
		}
		o, ok := verbs[c.Words[1].Text]
		if !ok {
			return interpretedAs(r, c, in)
		}
		met, rest := o.parse(c.Words[2:])
		if line, ok := valueOf(met, "c", "call"); ok && len(o.long) > 0 {
			r.lineIn(line, in)
			return true
		}
		if len(rest) == 0 {
			return false
		}
		r.command(rest, in)
		return true
	}
}

// interpretedAs is for runners that are interpreters too.
func interpretedAs(r *reader, c Command, in input) bool {
	if i := interpreterOf(c.Name()); i != nil {
		i.read(r, c, in)
	}
	return false
}
