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
}

// interpreters by name, without the version that may follow it.
var interpreters = map[string]*interpreter{
	"python": {options: options{short: "WXcm", long: []string{"check-hash-based-pycs"}}, code: []string{"c"}, input: []string{"m", "V", "version", "h", "help"}},
	"node": {options: options{short: "rCep", long: []string{"require", "import", "loader", "experimental-loader", "conditions", "env-file", "eval", "print"}},
		code: []string{"e", "p", "eval", "print", "pe"}, input: []string{"v", "version", "h", "help", "test", "run", "watch"}},
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
	"erl":       {options: options{long: []string{"eval", "run", "s", "pa"}, single: true}, code: []string{"eval", "run"}},
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
	"elvish":    {options: options{short: "ce"}, code: []string{"c", "e"}},
	"raku":      {options: options{short: "eIM"}, code: []string{"e"}},
	"swift":     {options: options{short: "e"}, code: []string{"e"}, filter: true},
	"qjs":       {options: options{short: "e", long: []string{"eval"}}, code: []string{"e", "eval"}},
	"ed":        {},
}

// sameAs are other names of interpreters.
var sameAs = map[string]string{
	"python3": "python", "pypy": "python", "ipython": "python", "nodejs": "node", "luajit": "lua", "irb": "ruby", "jruby": "ruby",
	"vi": "vim", "nvim": "vim", "view": "vim", "ex": "vim", "tcsh": "csh", "powershell": "pwsh", "r": "rscript", "wish": "tclsh",
	"emacsclient": "emacs", "vimdiff": "vim", "gvim": "vim", "gview": "vim", "gvimdiff": "vim", "rvim": "vim", "rview": "vim", "evim": "vim", "vimx": "vim",
	"nvim-qt": "vim", "mvim": "vim", "red": "ed", "perl6": "raku", "oil": "elvish", "ysh": "elvish", "rc": "elvish", "es": "elvish", "ion": "elvish", "murex": "elvish",
	"ngs": "elvish", "scsh": "elvish", "gash": "elvish", "d8": "qjs", "jsc": "qjs", "mujs": "qjs", "hy": "elvish", "janet": "qjs", "fennel": "qjs", "nim": "swift",
	"babel-node": "node", "swc-node": "node", "esno": "node", "esrun": "node", "jiti": "node", "vite-node": "node", "zx": "node", "micropython": "python",
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
		if i.isCode(name) || i == interpreters["python"] && name == "m" && runsModule(m.value) || i == interpreters["perl"] && strings.Contains("mM", name) && !isWord(m.value) ||
			i == interpreters["node"] && isDataURL(m.value) {
			r.out.findIn(InlineCode, c)
			return
		}
		if i == interpreters["node"] && slices.Contains(preloads, name) && isFile(m.value) {
			r.out.findIn(Script, c)
		}
		quiet = quiet || slices.Contains(i.input, name)
	}
	switch {
	case len(rest) > 0 && !rest[0].Fixed:
		r.out.findIn(InlineCode, c)
	case i == interpreters["ed"] && in.fed(): // its operand is the text, and its input are commands
		r.out.findIn(InlineCode, c)
	case len(rest) > 0 && rest[0].Text != "-" && rest[0].Text != "/dev/stdin", quiet:
		if !i.filter && len(rest) > 0 {
			r.script(rest[0])
		}
	case in.fed() || len(rest) > 0:
		r.out.findIn(InlineCode, c)
	default:
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

// codeModules are Python modules that run code given as an argument, or typed.
var codeModules = []string{"timeit", "pty", "code", "pdb", "cprofile", "profile", "trace", "runpy", "asyncio", "idlelib", "ipython", "bdb", "doctest", "imp",
	"antigravity", "xmlrpc", "webbrowser", "subprocess", "os", "shutil", "multiprocessing"}

// runsModule reports whether python -m MODULE runs code that is not the project's.
func runsModule(w Word) bool {
	first, _, _ := strings.Cut(strings.ToLower(w.Text), ".")
	return !w.Fixed || slices.Contains(codeModules, first)
}

// preloads are node's options that load a module before the script.
var preloads = []string{"r", "require", "import", "loader", "experimental-loader"}

// isFile reports whether a module is given as a file, not as the name of a package.
func isFile(module Word) bool {
	return module.Text != "" && strings.IndexByte("./~", module.Text[0]) >= 0
}

// isDataURL reports whether a module is code in a data: URL, as node's --import takes it.
func isDataURL(w Word) bool { return strings.Contains(strings.ToLower(w.Text), "data:") }

// isWord reports whether a module's name is a plain word: perl runs text after it.
func isWord(w Word) bool {
	return w.Fixed && strings.Trim(strings.ToLower(w.Text), "abcdefghijklmnopqrstuvwxyz0123456789_:-") == ""
}
