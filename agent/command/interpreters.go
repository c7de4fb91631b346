package command

import (
	"slices"
	"strings"
)

// interpreter is a program that runs code which may be an argument.
type interpreter struct {
	options options
	code    []string // options that give code
	input   []string // options after which it reads nothing
	filter  bool     // its input is data: it cannot be given code there
	verbs   []string // first operands that mean an option of code
}

// interpreters by name, without the version that may follow it.
var interpreters = map[string]*interpreter{
	"python": {options: options{short: "WXcm", long: []string{"check-hash-based-pycs"}}, code: []string{"c"}, input: []string{"m", "V", "version", "h", "help"}},
	"node": {options: options{short: "rCep", long: []string{"require", "import", "loader", "experimental-loader", "conditions", "env-file", "eval", "print"}},
		code: []string{"e", "p", "eval", "print", "pe"}, input: []string{"v", "version", "h", "help", "test", "run", "watch"}},
	"deno": {verbs: []string{"eval", "repl"}},
	"bun":  {options: options{short: "ep", long: []string{"eval", "print"}}, code: []string{"e", "p", "eval", "print"}, input: []string{"v", "version", "h", "help"}},
	"perl": {options: options{short: "IMmeE"}, code: []string{"e", "E"}, input: []string{"v", "V"}},
	"ruby": {options: options{short: "IrCEe"}, code: []string{"e"}, input: []string{"v", "version"}},
	"php": {options: options{short: "dcSztfBRFEr", long: []string{"run", "define", "server", "docroot", "process-code", "process-begin", "process-end"}},
		code: []string{"r", "B", "R", "E", "run", "process-code", "process-begin", "process-end"}, input: []string{"S", "server", "v", "version", "i", "m"}},
	"lua":       {options: options{short: "el"}, code: []string{"e"}, input: []string{"v"}},
	"osascript": {options: options{short: "el"}, code: []string{"e"}},
	"rscript":   {options: options{short: "e"}, code: []string{"e"}, filter: true},
	"julia":     {options: options{short: "eEpLtJC", long: []string{"eval", "print"}}, code: []string{"e", "E", "eval", "print"}},
	"elixir":    {options: options{short: "er", long: []string{"eval", "rpc-eval"}}, code: []string{"e", "eval", "rpc-eval"}, filter: true},
	"erl":       {options: options{long: []string{"eval", "run", "s", "pa"}, single: true}, code: []string{"eval"}},
	"groovy":    {options: options{short: "e"}, code: []string{"e"}, filter: true},
	"scala":     {options: options{short: "e"}, code: []string{"e"}},
	"ghc":       {options: options{short: "e"}, code: []string{"e"}, filter: true},
	"tclsh":     {},
	"expect":    {options: options{short: "cf"}, code: []string{"c"}},
	"vim":       {options: options{short: "cSuiTW", long: []string{"cmd"}, plus: true}, code: []string{"c", "cmd", "S"}, filter: true},
	"emacs":     {options: options{short: "fl", long: []string{"eval", "execute", "funcall", "load", "script"}}, code: []string{"eval", "execute", "funcall", "f"}, filter: true},
	"fish":      {options: options{short: "cCo", long: []string{"command", "init-command"}}, code: []string{"c", "C", "command", "init-command"}},
	"nu":        {options: options{short: "cel", long: []string{"commands", "execute", "config"}}, code: []string{"c", "e", "commands", "execute"}},
	"xonsh":     {options: options{short: "c"}, code: []string{"c"}},
	"csh":       {options: options{short: "c"}, code: []string{"c"}},
	"pwsh":      {options: options{single: true, long: []string{"command", "encodedcommand", "executionpolicy", "configurationname"}}, code: []string{"c", "command", "e", "ec", "enc", "encodedcommand"}},
	"cmd":       {code: []string{"/c", "/k", "/r"}},
	"gdb":       {options: options{short: "x", long: []string{"ex", "eval-command", "iex", "command"}, single: true}, code: []string{"ex", "eval-command", "iex", "x", "command"}},
	"sqlite3":   {filter: true},
	"make":      {options: options{short: "fCIjlo", long: []string{"eval", "file", "directory"}}, code: []string{"eval"}, filter: true},
}

// sameAs are other names of interpreters.
var sameAs = map[string]string{
	"python3": "python", "pypy": "python", "ipython": "python", "nodejs": "node", "luajit": "lua", "irb": "ruby", "jruby": "ruby",
	"vi": "vim", "nvim": "vim", "view": "vim", "ex": "vim", "tcsh": "csh", "powershell": "pwsh", "gmake": "make", "r": "rscript", "wish": "tclsh",
	"emacsclient": "emacs",
}

func interpreterOf(name string) *interpreter {
	for _, n := range []string{name, strings.TrimRight(name, "0123456789.")} {
		if same, ok := sameAs[n]; ok {
			n = same
		}
		if i := interpreters[n]; i != nil {
			return i
		}
	}
	return nil
}

// read finds code in the arguments or the input.
func (i *interpreter) read(r *reader, c Command, in input) {
	if i == interpreters["cmd"] {
		if slices.ContainsFunc(c.Words[1:], func(w Word) bool { return slices.Contains(i.code, strings.ToLower(w.Text)) }) {
			r.out.findIn(InlineCode, c)
		}
		return
	}
	met, rest := i.options.parse(c.Words[1:])
	quiet := i.filter
	for _, m := range met {
		name := m.name
		if i.options.single {
			name = strings.ToLower(name)
		}
		if i.isCode(name) {
			r.out.findIn(InlineCode, c)
			return
		}
		quiet = quiet || slices.Contains(i.input, name)
	}
	switch {
	case len(rest) > 0 && (!rest[0].Fixed || slices.Contains(i.verbs, rest[0].Text)):
		r.out.findIn(InlineCode, c)
	case len(rest) > 0 && rest[0].Text != "-" && rest[0].Text != "/dev/stdin", quiet:
	case in.fed() || len(rest) > 0:
		r.out.findIn(InlineCode, c)
	case i.verbs == nil:
		r.out.findIn(Interactive, c)
	}
}

// isCode reports whether the option gives code. Long names may be cut short.
func (i *interpreter) isCode(name string) bool {
	if jump, ok := strings.CutPrefix(name, "+"); ok {
		return i.options.plus && strings.Trim(jump, "0123456789") != ""
	}
	return slices.ContainsFunc(i.code, func(c string) bool { return c == name || len(name) > 1 && strings.HasPrefix(c, name) })
}
