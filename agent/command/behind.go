package command

import "strings"

// opener looks for commands behind one. It reports whether the command does
// nothing but run them.
type opener func(r *reader, c Command, in input) bool

// command notes a command and what it runs.
func (r *reader) command(words []Word, in input) {
	c := Command{words}
	if len(r.out.Commands)+len(r.out.Outer) >= maxCommands {
		if !r.full {
			r.out.find(Unparsed, "too many commands")
		}
		r.full = true
		return
	}
	if !words[0].Fixed || words[0].Text == "" {
		r.out.findIn(Dynamic, c)
		r.out.Commands = append(r.out.Commands, c)
		return
	}
	outer := false
	if open := openers[c.Name()]; open != nil {
		r.deeper(c.String(), func() { outer = open(r, c, in) })
	} else if i := interpreterOf(c.Name()); i != nil {
		i.read(r, c, in)
	}
	if outer {
		r.out.Outer = append(r.out.Outer, c)
	} else {
		r.out.Commands = append(r.out.Commands, c)
	}
}

// openers has the commands that run others, by name. It is filled in init, as
// they need each other.
var openers map[string]opener

func init() {
	openers = map[string]opener{
		"eval": openEval, "trap": openTrap, "alias": openAlias, "source": openSource, ".": openSource,
		"cd": openMove, "pushd": openMove, "chdir": openMove,
		"find": openFind, "gfind": openFind, "fd": openFd, "fdfind": openFd,
		"ssh": openSSH, "watch": openWatch, "parallel": openLineOf(options{short: "jNIan"}), "xargs": openXargs,
		"git": openGit, "awk": openAwk, "gawk": openAwk, "mawk": openAwk, "nawk": openAwk,
		"command": openCommand, "env": openEnv,
	}
	for name, o := range wrappers {
		openers[name] = openWrapped(o)
	}
	for _, name := range shells {
		openers[name] = openShell
	}
	for name, o := range lineTakers {
		openers[name] = openLineOption(o)
	}
	for name, subs := range runners {
		openers[name] = openRunner(subs)
	}
}

// wrappers run their operands as a command.
var wrappers = map[string]options{
	"nohup": {}, "setsid": {}, "shx": {}, "builtin": {}, "busybox": {}, "toybox": {}, "noglob": {}, "nocorrect": {},
	"unbuffer": {}, "dbus-run-session": {}, "fakeroot": {short: "lisb"}, "rlwrap": {short: "abcCDefHilmNOpPqRsStTwz"},
	"exec":     {short: "a"},
	"nice":     {short: "n", long: []string{"adjustment"}},
	"ionice":   {short: "cn", long: []string{"class", "classdata"}},
	"chrt":     {short: "TPD", skip: 1},
	"taskset":  {skip: 1},
	"timeout":  {short: "ks", long: []string{"kill-after", "signal"}, skip: 1},
	"gtimeout": {short: "ks", long: []string{"kill-after", "signal"}, skip: 1},
	"stdbuf":   {short: "ioe", long: []string{"input", "output", "error"}},
	"time":     {short: "of", long: []string{"format", "output"}},
	"strace":   {short: "abeEIoOpPsSuUX"}, "ltrace": {short: "aAeFlnopsuUwx"},
	"chroot":   {long: []string{"groups", "userspec"}, skip: 1},
	"unshare":  {short: "SG", long: []string{"setuid", "setgid", "root", "wd", "propagation", "map-user", "map-group"}},
	"nsenter":  {short: "tSG", long: []string{"target", "setuid", "setgid"}},
	"xvfb-run": {short: "efnpsw", long: []string{"error-file", "auth-file", "server-num", "server-args", "wait"}},
	"sudo":     {short: "CDghpRrTtUu", long: []string{"user", "group", "host", "prompt", "chdir", "chroot", "role", "type", "command-timeout", "close-from"}, assigns: true},
	"doas":     {short: "Cu"},
	"pkexec":   {long: []string{"user"}},
	"run0":     {short: "ugD", long: []string{"user", "group", "chdir", "setenv", "unit", "property", "description", "slice", "background"}},
	"setpriv":  {long: []string{"ruid", "euid", "rgid", "egid", "reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set"}},
	"systemd-run": {short: "uptHM", long: []string{"unit", "property", "description", "slice", "uid", "gid", "nice", "working-directory", "setenv",
		"on-active", "on-boot", "on-calendar", "machine", "host"}},
	"caffeinate": {short: "tw"},
	"cross-env":  {assigns: true},
	"npx":        {short: "p", long: []string{"package", "prefix", "workspace"}},
	"bunx":       {}, "pnpx": {}, "uvx": {long: []string{"from", "with", "python"}},
	"flock":     {short: "wE", long: []string{"timeout", "wait", "conflict-exit-code"}, skip: 1},
	"catchsegv": {}, "valgrind": {}, "entr": {},
}

// openWrapped opens a wrapper with the options o, and lets -c give a line where
// that is its meaning too.
func openWrapped(o options) opener {
	return func(r *reader, c Command, in input) bool {
		met, rest := o.parse(c.Words[1:])
		r.setBy(met)
		_, line := valueOf(met, "c")
		if len(rest) > 1 && (rest[0].Text == "-c" || rest[0].Text == "--command") { // flock FILE -c LINE
			line, rest = true, rest[1:]
		}
		if len(rest) == 0 {
			return false
		}
		if line && givesLine[c.Name()] {
			r.lineIn(rest[0], in)
			return true
		}
		r.command(rest, in)
		return true
	}
}

// givesLine are the wrappers for which -c LINE runs a line.
var givesLine = map[string]bool{"npx": true, "flock": true}

func (r *reader) setBy(met []option) {
	for _, m := range met {
		if m.name == "=" {
			name, value, _ := strings.Cut(m.value.Text, "=")
			r.out.Sets = append(r.out.Sets, Setting{name, Word{value, true}})
		}
	}
}

// lineIn reads a word that a shell will run as a line.
func (r *reader) lineIn(w Word, in input) {
	if !w.Fixed {
		r.out.find(Dynamic, w.Text)
		return
	}
	r.line(w.Text, in)
}

// lineTakers run the value of an option as a line.
var lineTakers = map[string]options{
	"su":        {short: "cgGsw", long: []string{"command", "group", "shell"}},
	"runuser":   {short: "cgGsuw", long: []string{"command", "group", "shell", "user"}},
	"script":    {short: "cEIOBTmo", long: []string{"command"}},
	"nodemon":   {short: "xewi", long: []string{"exec", "ext", "watch", "ignore", "signal", "delay"}},
	"hyperfine": {short: "wrmMpcSn", long: []string{"warmup", "prepare", "setup", "cleanup", "conclude", "shell", "runs"}},
}

// openLineOption opens commands of lineTakers.
func openLineOption(o options) opener {
	return func(r *reader, c Command, in input) bool {
		args, found := c.Words[1:], false
		for len(args) > 0 { // options may follow operands
			var met []option
			met, args = o.parse(args)
			for _, m := range met {
				switch m.name {
				case "c", "command", "x", "exec", "prepare", "setup", "cleanup", "conclude", "p":
					r.lineIn(m.value, in)
					found = true
				}
			}
			if len(args) > 0 {
				if c.Name() == "hyperfine" {
					r.lineIn(args[0], in)
					found = true
				}
				args = args[1:]
			}
		}
		return found
	}
}

// openLineOf opens commands that run all operands, joined, as a line.
func openLineOf(o options) opener {
	return func(r *reader, c Command, in input) bool {
		_, rest := o.parse(c.Words[1:])
		return r.joined(rest, in)
	}
}

// joined reads words that are joined to a line.
func (r *reader) joined(words []Word, in input) bool {
	if len(words) == 0 {
		return false
	}
	line := Word{Fixed: true}
	for i, w := range words {
		if i > 0 {
			line.Text += " "
		}
		line.Text += w.Text
		line.Fixed = line.Fixed && w.Fixed
	}
	r.lineIn(line, in)
	return true
}

func openWatch(r *reader, c Command, in input) bool {
	met, rest := options{short: "nq", long: []string{"interval", "equexit"}}.parse(c.Words[1:])
	_, direct := valueOf(met, "x", "exec")
	if direct && len(rest) > 0 {
		r.command(rest, in)
		return true
	}
	return r.joined(rest, in)
}

func openEval(r *reader, c Command, in input) bool {
	r.out.findIn(Eval, c)
	return r.joined(c.Words[1:], in)
}

func openTrap(r *reader, c Command, in input) bool {
	_, rest := options{}.parse(c.Words[1:])
	if len(rest) > 1 && rest[0].Text != "-" {
		r.lineIn(rest[0], in)
	}
	return false
}

func openAlias(r *reader, c Command, in input) bool {
	for _, w := range c.Words[1:] {
		if _, line, ok := strings.Cut(w.Text, "="); ok {
			r.lineIn(Word{line, w.Fixed}, in)
		}
	}
	return false
}

func openSource(r *reader, c Command, _ input) bool {
	r.out.findIn(Script, c)
	return false
}

func openMove(r *reader, c Command, _ input) bool {
	_, rest := options{}.parse(c.Words[1:])
	to := Word{"~", true}
	if len(rest) > 0 {
		to = rest[0]
	}
	r.out.Moves = append(r.out.Moves, to)
	return false
}

// openCommand: "command -v NAME" only looks NAME up.
func openCommand(r *reader, c Command, in input) bool {
	met, rest := options{}.parse(c.Words[1:])
	if _, looks := valueOf(met, "v", "V"); looks || len(rest) == 0 {
		return false
	}
	r.command(rest, in)
	return true
}

func openEnv(r *reader, c Command, in input) bool {
	o := options{short: "uCSP", long: []string{"unset", "chdir", "split-string", "argv0"}, dash: true, assigns: true}
	met, rest := o.parse(c.Words[1:])
	r.setBy(met)
	if to, ok := valueOf(met, "C", "chdir"); ok {
		r.out.Moves = append(r.out.Moves, to)
	}
	if line, ok := valueOf(met, "S", "split-string"); ok {
		return r.joined(append([]Word{{"env", true}, line}, rest...), in)
	}
	if len(rest) == 0 {
		return false
	}
	r.command(rest, in)
	return true
}

func openXargs(r *reader, c Command, _ input) bool {
	o := options{short: "adEILnPs", long: []string{"arg-file", "delimiter", "max-lines", "max-args", "max-procs", "max-chars", "process-slot-var"}}
	met, rest := o.parse(c.Words[1:])
	if len(rest) == 0 {
		return false // echo
	}
	place, replaces := valueOf(met, "I", "replace", "i")
	if place.Text == "" {
		place.Text = "{}"
	}
	// What comes in becomes words of the command: for a shell or an
	// interpreter, code.
	words := make([]Word, len(rest), len(rest)+1)
	for i, w := range rest {
		words[i] = Word{w.Text, w.Fixed && !(replaces && strings.Contains(w.Text, place.Text))}
	}
	if !replaces {
		words = append(words, Word{Text: "…"})
	}
	r.command(words, input{})
	return true
}
