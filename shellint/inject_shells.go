package shellint

import (
	"cmp"
	"embed"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed scripts
var scripts embed.FS

// injector says how Inject handles one kind of shell.
type injector struct {
	flags flags
	plan  func(plan *Injection, s start, o InjectOptions)
}

var injectors = map[Shell]injector{
	ShellBash:       {flags{login: loginFlags, keep: []string{"-i"}}, planBash},
	ShellZsh:        {flags{login: loginFlags, keep: []string{"-i"}}, planZsh},
	ShellFish:       {flags{login: loginFlags, keep: []string{"-i", "--interactive", "-P", "--private"}}, planFish},
	ShellNu:         {flags{login: loginFlags, keep: []string{"-i", "--interactive"}}, planNu},
	ShellPowerShell: {powershellFlags, planPowerShell},
	ShellCmd:        {flags{}, planCmd},
}

var loginFlags = []string{"-l", "--login", "-il", "-li"}

// powershellFlags are compared without regard to case, as in PowerShell.
var powershellFlags = flags{
	login: []string{"-l", "-login"},
	keep:  []string{"-i", "-interactive", "-noe", "-noexit", "-nol", "-nologo", "-nop", "-noprofile"},
	fold:  true,
}

// shellOf returns the kind of shell by the name of its program. It ignores the path, the
// "-" before the name of a login shell, ".exe", and a version behind the name.
func shellOf(program string) Shell {
	if i := strings.LastIndexAny(program, `/\`); i >= 0 {
		program = program[i+1:]
	}
	name := strings.TrimPrefix(program, "-")
	if exe := strings.TrimSuffix(strings.ToLower(name), ".exe"); len(exe) < len(name) {
		name = exe
	}
	switch name = strings.TrimRight(name, "-.0123456789"); name { // such as bash-5.2
	case "bash", "zsh", "fish", "nu", "pwsh", "cmd":
		return Shell(name)
	case "powershell":
		return ShellPowerShell
	}
	return ShellNone
}

// flags are the arguments that Inject understands in an interactive start. Any other
// argument makes the start unknown.
type flags struct {
	login []string // make it a login shell; on a terminal, a shell is interactive without a flag
	keep  []string // passed on unchanged
	fold  bool     // ignore case
}

// start is an understood argv.
type start struct {
	program string
	keep    []string
	login   bool
}

func (f flags) parse(argv []string) (start, bool) {
	s := start{program: argv[0]}
	s.login = strings.HasPrefix(s.program, "-")
	for _, arg := range argv[1:] {
		name := arg
		if f.fold {
			name = strings.ToLower(arg)
		}
		switch {
		case slices.Contains(f.login, name):
			s.login = true
		case slices.Contains(f.keep, name):
			s.keep = append(s.keep, arg)
		default:
			return start{}, false
		}
	}
	return s, true
}

// argv returns the new arguments: the program, the flag login unless the program's name
// or s makes it needless, the kept arguments, and more.
func (s start) argv(login string, more ...string) []string {
	argv := []string{s.program}
	if s.login && !strings.HasPrefix(s.program, "-") {
		argv = append(argv, login)
	}
	argv = append(argv, s.keep...)
	return append(argv, more...)
}

// planBash makes bash read our file instead of ~/.bashrc. A login shell ignores --rcfile,
// so bash starts without the login flag, and the script reads the files of a login shell
// itself.
func planBash(plan *Injection, s start, o InjectOptions) {
	file := filepath.Join(o.Dir, "bashrc")
	login, modern := "", "1"
	if s.login {
		login = "1"
	}
	if o.DebugTrap {
		modern = ""
	}
	plan.addFile("bashrc", "bash.sh", o, "@FILE@", quotePosix(file), "@LOGIN@", quotePosix(login), "@MODERN@", quotePosix(modern))
	plan.Argv = append([]string{strings.TrimPrefix(s.program, "-"), "--rcfile", file}, s.keep...)
	plan.Detect = true
}

// planZsh makes zsh read its first start-up file from our folder. That file restores the
// user's folder.
func planZsh(plan *Injection, s start, o InjectOptions) {
	file := filepath.Join(o.Dir, ".zshenv")
	restore := "unset ZDOTDIR"
	if dir := o.getenv("ZDOTDIR"); dir != "" {
		restore = "export ZDOTDIR=" + quotePosix(dir)
	}
	plan.addFile(".zshenv", "zsh.sh", o, "@FILE@", quotePosix(file), "@RESTORE@", restore)
	plan.Argv = s.argv("-l")
	plan.Env = map[string]string{"ZDOTDIR": o.Dir}
	plan.Detect = true
}

// planFish makes fish run our file after the user's files.
func planFish(plan *Injection, s start, o InjectOptions) {
	file := filepath.Join(o.Dir, "tether.fish")
	plan.addFile("tether.fish", "fish.fish", o, "@FILE@", quoteFish(file))
	plan.Argv = s.argv("-l", "--init-command", "source "+quoteFish(file))
	plan.Detect = true
}

// planNu makes nushell run our file after the user's files. nushell's own marks, which
// have no nonce, stay on.
func planNu(plan *Injection, s start, o InjectOptions) {
	file := filepath.Join(o.Dir, "tether.nu")
	plan.addFile("tether.nu", "nu.nu", o, "@FILE@", quoteNu(file))
	plan.Argv = s.argv("--login", "--execute", "source "+quoteNu(file))
	plan.Detect = true
}

// planPowerShell makes PowerShell run our file after the user's profile. PowerShell runs
// it as text, because an execution policy may forbid script files. In a constrained
// language mode, methods and hooks do not work, so it is not run and there are no marks.
func planPowerShell(plan *Injection, s start, o InjectOptions) {
	file := filepath.Join(o.Dir, "tether.ps1")
	if strings.Contains(strings.ToLower(s.program), "powershell") {
		s.login = false // Windows PowerShell has no login shells
	}
	plan.addFile("tether.ps1", "powershell.ps1", o, "@FILE@", quotePowerShell(file))
	command := "if ($ExecutionContext.SessionState.LanguageMode -eq 'FullLanguage') { . ([ScriptBlock]::Create([IO.File]::ReadAllText(" +
		quotePowerShell(file) + "))) }"
	plan.Argv = s.argv("-Login", "-NoExit", "-Command", command)
	plan.Detect = true
}

// planCmd marks the prompts and reports the directory. cmd.exe keeps its prompt in the
// environment, which every program can read, so these marks have no nonce. cmd.exe cannot
// report when a line starts to run.
func planCmd(plan *Injection, _ start, o InjectOptions) {
	prompt := cmp.Or(o.getenv("PROMPT"), "$P$G")
	plan.Env = map[string]string{"PROMPT": `$E]633;A$E\$E]9;9;$P$E\` + prompt + `$E]633;B$E\`}
}

// addFile adds the script with its placeholders replaced.
func (plan *Injection) addFile(name, script string, o InjectOptions, placeholders ...string) {
	text, err := scripts.ReadFile("scripts/" + script)
	if err != nil {
		panic(err) // the scripts are embedded, so the name is wrong
	}
	r := strings.NewReplacer(append([]string{"@NONCE@", o.Nonce}, placeholders...)...)
	plan.Files = append(plan.Files, File{Name: name, Mode: 0o600, Content: []byte(r.Replace(string(text)))})
}

// quotePosix quotes for bash and zsh.
func quotePosix(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoteFish quotes for fish, in which a backslash in single quotes escapes.
func quoteFish(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// quoteNu quotes for nushell.
func quoteNu(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// quotePowerShell quotes for PowerShell, which treats typographic single quotation marks
// like the plain one.
func quotePowerShell(s string) string {
	return "'" + strings.NewReplacer("'", "''", "\u2018", "\u2018\u2018", "\u2019", "\u2019\u2019", "\u201a", "\u201a\u201a",
		"\u201b", "\u201b\u201b").Replace(s) + "'"
}
