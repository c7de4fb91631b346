package policy

import (
	"cmp"
	"slices"
	"strings"

	"tether/agent/command"
	"tether/internal/lazyregexp"
	"tether/platform/shell"
)

// onSettings judges the variables that the line or the request sets and that can make
// programs run something else.
func (b builtin) onSettings(sets []command.Setting, r Request) []Decision {
	var all []Decision
	add := func(name string) {
		all = append(all, b.decide(ruleEnvironment, "it sets %s, which can make programs run others", brief(name)))
	}
	for _, s := range sets {
		if s.Name == "SHELL" && s.Value.Fixed && shell.Usual(s.Value.Text) {
			continue
		}
		if loadsFromHere(s, r.Cwd) || loadsNothing(s) {
			continue
		}
		switch {
		case loads(s.Name), opens(s.Name) && !(s.Value.Fixed && slices.Contains(harmlessPagers, s.Value.Text)),
			startsProgram(s.Name) && b.startsOther(expanded(s, sets)), carriesOptions(s.Name) && b.optionsRun(s.Name, expanded(s, sets), r):
			add(s.Name)
		}
	}
	for _, v := range r.Env {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case loads(name) && !(name == "SHELL" && shell.Usual(value)), startsProgram(name) && b.startsOther(value), carriesOptions(name) && b.optionsRun(name, value, r):
			add(name)
		}
	}
	return all
}

var harmlessPagers = []string{"", "cat", "less", "more", "true", ":", "vi", "vim", "nano"}

// loads reports whether the variable makes programs load or run code, or read a
// configuration that can.
func loads(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(loading, name) || slices.ContainsFunc(loadingPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

var loadingPrefixes = []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_SSH", "GIT_CONFIG", "NPM_CONFIG_", "TETHER_", "COR_", "CORECLR_"}

var loading = []string{
	"PATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PS0", "PS4", "PROMPT_COMMAND", "SHELL", "COMSPEC", "ZDOTDIR", "FPATH", // shells
	"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONBREAKPOINT", "PYTHONINSPECT", "PYTEST_PLUGINS", "PERL5OPT", "PERL5LIB", "PERL5DB", "PERL5SHELL", "PERLLIB",
	"RUBYOPT", "RUBYLIB", "GEM_HOME", "GEM_PATH", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "DOTNET_STARTUP_HOOKS",
	"LUA_INIT", "LUA_PATH", "LUA_CPATH", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE", "R_PROFILE_USER", "JULIA_LOAD_PATH", "TCLLIBPATH", "AWKPATH", "AWKLIBPATH", // interpreters
	"GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_TEMPLATE_DIR", "GIT_DIR", "HGRCPATH", "SSH_ASKPASS", "SUDO_ASKPASS", "LESSOPEN", "LESSCLOSE",
	"LESSEDIT", "VIMINIT", "EXINIT", "GVIMINIT", "MYVIMRC", "EMACSLOADPATH", "INPUTRC", "SCREENRC", "MAKEFILES", "GCONV_PATH", "GTK_MODULES", "GTK_PATH", "QT_PLUGIN_PATH",
	"OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", // other programs
	"XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "RIPGREP_CONFIG_PATH", "WGETRC", "CURL_HOME", "ANSIBLE_CONFIG", "PIP_CONFIG_FILE", "YARN_RC_FILENAME", "KUBECONFIG", "AWS_CONFIG_FILE",
	"DOCKER_HOST", "DOCKER_CONFIG", // configurations
}

// loadsFromHere reports whether the variable makes an interpreter look for modules only
// in the command's own directories: it looks in a script's own directory anyway,
// without a question.
func loadsFromHere(s command.Setting, cwd string) bool {
	if !slices.Contains([]string{"PYTHONPATH", "NODE_PATH", "CLASSPATH"}, s.Name) || !s.Value.Fixed || cwd == "" {
		return false
	}
	return !slices.ContainsFunc(strings.Split(s.Value.Text, ":"), func(dir string) bool {
		return strings.HasPrefix(dir, "~") || strings.Contains(dir, `\`) || !within(absolute(dir, cwd), cwd)
	})
}

// loadsNothing reports whether the value makes a variable harmless that otherwise loads
// code: breakpoints are off, or words are split at characters that no name of a program
// has.
func loadsNothing(s command.Setting) bool {
	switch s.Name {
	case "PYTHONBREAKPOINT":
		return s.Value.Fixed && (s.Value.Text == "0" || s.Value.Text == "")
	case "IFS":
		return s.Value.Fixed && strings.Trim(s.Value.Text, " \t\n,:;|=") == ""
	}
	return false
}

// opens reports whether the variable names a program that others start.
func opens(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasSuffix(name, "PAGER") || strings.HasSuffix(name, "EDITOR") || name == "VISUAL" || name == "BROWSER"
}

// startsProgram reports whether the variable names a program, or a line, that others
// start: compilers and helpers.
func startsProgram(name string) bool {
	name = strings.ToUpper(name)
	for _, ending := range []string{"_RSH", "_SSH", "_WRAPPER", "_RUNNER", "_LINKER", "_LAUNCHER", "_PROG", "_COMMAND", "_CMD", "_SHELL", "ASKPASS"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return slices.Contains([]string{"CC", "CXX", "CPP", "LD", "AR", "AS", "FC", "NM", "RANLIB", "STRIP", "HOSTCC", "HOSTCXX", "MAKE", "PKG_CONFIG", "LEX", "YACC", "RUSTC", "RUSTDOC", "CARGO_BUILD_RUSTC",
		"MAKESHELL"}, name)
}

// startsOther reports whether a line that a variable names is more than a usual
// program: one in a directory, a shell, or a command that the rules do not let pass.
func (b builtin) startsOther(line string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if first == "" {
		return false
	}
	if strings.Contains(first, "/") && !command.Installed(first) {
		return true
	}
	return b.runs(command.Line(line), true)
}

// runs reports whether the reading of a line from a variable has something that the
// rules do not let pass. That the program reads its input does not matter: this is not
// its whole command.
func (b builtin) runs(read *command.Reading, noShell bool) bool {
	for _, f := range read.Findings {
		if f.Kind != command.Interactive {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(read.Commands, read.Outer), func(c command.Command) bool {
		return len(b.onCommand(c, false)) > 0 || noShell && command.IsShell(c.Name())
	})
}

// carriesOptions reports whether the value of the variable is read as options by some
// program.
func carriesOptions(name string) bool {
	name = strings.ToUpper(name)
	for _, ending := range []string{"OPTIONS", "OPTS", "OPT", "FLAGS", "_ARGS", "_EXTRA"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return slices.Contains([]string{"LESS", "MORE", "UNZIP", "PARALLEL"}, name)
}

// carriers are the programs that read the variables, where the name does not begin with
// that of the program.
var carriers = map[string]string{"MAKEFLAGS": "make", "GNUMAKEFLAGS": "make", "MFLAGS": "make", "GOFLAGS": "go build", "RUSTFLAGS": "rustc", "CARGO_ENCODED_RUSTFLAGS": "rustc",
	"CARGO_BUILD_RUSTFLAGS": "rustc", "ZIPOPT": "zip", "MANOPT": "man", "GREP_OPTIONS": "grep", "ERL_FLAGS": "erl", "ERL_AFLAGS": "erl", "ERL_ZFLAGS": "erl",
	"ELIXIR_ERL_OPTIONS": "erl"}

// optionsRun reports whether a program that reads options from the variable would run
// something because of them, or write a file outside.
func (b builtin) optionsRun(name, value string, r Request) bool {
	name = strings.ToUpper(name)
	prefix, _, _ := strings.Cut(name, "_")
	program := cmp.Or(carriers[name], strings.ToLower(prefix))
	switch {
	case strings.HasSuffix(name, "FLAGS") && carriers[name] == "":
		program = "cc"
	case strings.HasSuffix(name, "MAKEFLAGS") && !strings.HasPrefix(value, "-") && !strings.Contains(value, "="):
		value = "-" + value // a bundle of letters
	}
	value = strings.ReplaceAll(value, "\x1f", " ") // between the words of CARGO_ENCODED_RUSTFLAGS
	for word := range strings.FieldsSeq(value) {
		if loadsCode().MatchString(word) {
			return true
		}
	}
	read := command.Line(program + " " + value)
	return b.runs(read, false) || slices.ContainsFunc(read.Files, func(f command.File) bool { return len(b.onWrite(f.Name, r.Cwd, false)) > 0 })
}

// loadsCode matches options, of whatever program, that load code or name a program.
var loadsCode = lazyregexp.New(`(?i)^-+(f?plugin|javaagent|agentlib|agentpath|xx:on|require|import|loader|experimental-loader|preload|load|wrapper|specs|toolexec|vettool|runtool|b[./~]|fuse-ld=.*/|` +
	`\S*(exec|eval|command|plugin|wl,.*plugin|wrapper|program|launcher|askpass|hook|bootclasspath))`)

var reference = lazyregexp.New(`\$(\w+|\{\w+(:?-[^}]*)?\})`)

// expanded is the value of a setting with the values of the variables that the line
// itself sets before. Others come from the environment of the command, where they have
// been judged, and count as empty, as does the output of commands, which are judged
// where they stand.
func expanded(s command.Setting, sets []command.Setting) string {
	if s.Value.Fixed {
		return s.Value.Text
	}
	text := strings.Trim(s.Value.Text, `"`)
	text = reference().ReplaceAllStringFunc(text, func(ref string) string {
		name, _, _ := strings.Cut(strings.Trim(ref, "${}"), ":")
		name, _, _ = strings.Cut(name, "-")
		value := ""
		for _, other := range sets {
			if other.Name == name && other.Value.Fixed {
				value = other.Value.Text
			}
		}
		return value
	})
	return substitution().ReplaceAllString(text, "")
}

var substitution = lazyregexp.New("\\$\\([^()]*\\)|`[^`]*`")
