package local

import (
	"path/filepath"
	"slices"
	"strings"

	"tether/platform/proc"
)

// Known programs by their names, as [program] returns them. A name that ends in * covers
// all names with that beginning. Except for agents, a name counts only for a file that
// fits it, see fits.
var (
	// wrappers start the program that their arguments name and wait for it, so the agent
	// is above them. Shells can be wrappers, too, see shells.
	wrappers = []string{"env", "npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uv", "uvx", "pipx", "tether", "timeout", "nice", "nohup", "setsid",
		"stdbuf", "time", "ionice", "chrt", "taskset", "direnv", "mise", "asdf", "volta", "nix", "nix-shell", "devbox", "dotenv", "dotenvx", "op", "xargs",
		"unshare", "bwrap", "firejail", "catchsegv", "strace", "script"}
	// runners are programs in which people start others by a key, a rule or an alias. An
	// agent may use them, too, so it is not above them.
	runners = []string{"make", "gmake", "bmake", "remake", "ninja", "just", "task", "go-task", "mage", "rake", "invoke", "fab", "doit", "nox", "tox", "gulp", "grunt", "turbo", "cargo", "bazel*",
		"pipenv", "poetry", "conda", "mamba", "micromamba", "pixi", "rbenv", "pyenv", "bundle", "bun", "deno", "corepack", "node-gyp",
		"git", "git-*", "gh", "glab", "hg", "jj", "tig", "lazygit", "gitui", "lazydocker", "k9s", "vi", "ex", "nvi", "nano", "micro", "less", "more", "most", "man",
		"fzf", "sk", "watch", "viddy", "entr", "watchexec", "parallel", "hyperfine", "perf", "ltrace", "gdb", "lldb", "rr", "faketime", "proxychains*", "chronic", "ts", "doppler", "chamber", "aws-vault",
		"ranger", "nnn", "lf", "yazi", "mc", "vifm", "broot", "mutt", "neomutt", "aerc", "hivemind", "overmind", "foreman", "honcho", "process-compose", "goreman", "asciinema", "ttyrec"}
	// scripted are interpreters whose first argument identifies them.
	scripted = []string{"node", "nodejs", "bun", "deno", "python*", "pypy*", "ruby*", "perl*", "tclsh*", "wish*", "php*", "lua*"}
	// shells are wrappers unless they lead their session: then a person types in them.
	shells = []string{"sh", "bash", "rbash", "dash", "zsh*", "fish", "ash", "ksh*", "mksh", "busybox", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh*", "powershell", "cmd"}
	// never has programs that start the person's programs, so they are never agents.
	never = slices.Concat(managers, emulators, multiplexers)
	// managers start sessions and services.
	managers = []string{"init", "systemd*", "(sd-*", "launchd", "runit*", "runsv*", "s6-*", "openrc*", "supervise*", "supervisord", "dinit", "tini", "dumb-init", "catatonit",
		"docker*", "containerd*", "conmon", "crond", "cron", "atd", "anacron", "fcron", "login", "agetty", "getty", "sshd*", "dropbear", "telnetd", "mosh-server",
		"su", "sudo*", "doas", "run0", "runuser", "pkexec", "gdm*", "sddm*", "lightdm*", "gnome-session*", "gnome-shell", "kwin*", "plasmashell", "ksmserver", "sway", "hyprland", "xinit", "startx", "dbus-*",
		"explorer", "services", "svchost", "winlogon", "userinit", "wininit", "sihost", "taskeng", "taskhostw", "finder", "dock", "loginwindow", "xpcproxy"}
	// emulators show terminals to a person, on a screen or in a browser.
	emulators = []string{"xterm*", "uxterm", "rxvt*", "urxvt*", "gnome-terminal*", "ptyxis*", "kgx", "konsole", "yakuake", "xfce4-terminal", "mate-terminal", "lxterminal", "qterminal",
		"terminator", "tilix", "guake", "tilda", "st", "foot*", "alacritty", "kitty", "kitten", "wezterm*", "ghostty", "rio", "contour", "cool-retro-term", "hyper", "tabby", "warp", "warp-terminal*", "terminal", "iterm*",
		"windowsterminal", "openconsole", "conhost", "mintty", "conemu*", "ttyd", "gotty"}
	multiplexers = []string{"tmux*", "screen*", "zellij", "byobu*", "dtach", "abduco", "dvtm", "mprocs", "tether-host"}
	// batch has services that run programs without a person.
	batch = []string{"cron", "crond", "atd", "anacron", "fcron", "systemd*", "init", "supervise*", "runsv*", "s6-*"}
	// makers make terminals for programs, not for people. Interpreters and shells can,
	// too, see makesTerminals.
	makers = []string{"script", "scriptlive", "expect", "autoexpect", "unbuffer", "empty", "faketty", "socat*", "rlwrap", "sexpect", "goexpect", "pexpect"}
	// loaders are the system's, which can run any program.
	loaders = []string{"ld-*", "ld.so*"}
	// served has scripts of interpreters whose terminals a person sees, in a browser or
	// on a screen.
	served = []string{"jupyter*", "ipython*", "notebook*", "theia*", "wetty*", "butterfly*", "webssh*", "gateone*", "terminado*", "cockpit*"}
	// editors are programs with terminals of their own, in which the person types.
	editors = slices.Concat(electrons, jetbrains, zeds, []string{"java", "emacs*", "nvim*", "vim*", "helix", "hx", "kakoune", "kak", "lapce*", "sublime_text", "gvim*"})
	// electrons are editors that run in Electron.
	electrons = []string{"code", "code-*", "code - *", "code helper*", "codium", "vscodium", "cursor", "cursor helper*", "cursor-nightly", "kiro", "trae", "antigravity", "windsurf*", "positron"}
	// jetbrains are launchers of JetBrains' editors, and of editors made of them.
	jetbrains = []string{"idea*", "pycharm*", "webstorm*", "goland*", "clion*", "rider*", "phpstorm*", "rubymine*", "rustrover*", "datagrip*", "dataspell*", "fleet*", "studio*", "jetbrains*"}
	zeds      = []string{"zed", "zed-editor", "zeditor"}
)

// oneOf reports whether a table contains the name.
func oneOf(table []string, name string) bool {
	return slices.ContainsFunc(table, func(entry string) bool {
		if begin, ok := strings.CutSuffix(entry, "*"); ok {
			return strings.HasPrefix(name, begin)
		}
		return entry == name
	})
}

// kind is a program's role in a lineage.
type kind uint8

const (
	kindAgent   kind = iota // any program that is in no table
	kindWrapper             // the agent is above it
	kindRunner              // may be an agent's or a person's
	kindNever               // neither it nor a process above it is an agent
	kindEditor
)

// kindOf looks up a program in the tables. A shell that leads its session belongs to the
// person.
func (e *evidence) kindOf(p proc.Ancestor) kind {
	if p.Pid <= 1 || p.Pid == e.daemon || p.Exe == "" && len(p.Argv) == 0 {
		return kindNever
	}
	if e.knownAgent(p) != "" {
		return kindAgent
	}
	name := e.fitting(p)
	switch {
	case p.Exe == "" && oneOf(never, program(p.Argv)): // to record it would take all that is below it from the person
		return kindNever
	case name == "":
		return kindAgent
	case oneOf(never, name), oneOf(shells, name) && p.Session == p.Pid:
		return kindNever
	case oneOf(shells, name), oneOf(wrappers, name):
		return kindWrapper
	case oneOf(runners, name):
		return kindRunner
	case oneOf(editors, name):
		return kindEditor
	}
	return kindAgent
}

// makesTerminals reports whether a program that starts a session at a terminal is known
// to do so for a program, not for a person.
func (e *evidence) makesTerminals(p proc.Ancestor) bool {
	name := exeName(p)
	if oneOf(scripted, name) {
		return !e.showsTerminals(p)
	}
	return oneOf(makers, name) || oneOf(loaders, name) || oneOf(shells, name)
}

// showsTerminals reports whether a program is a known emulator, multiplexer or editor,
// whose terminals a person sees.
func (e *evidence) showsTerminals(p proc.Ancestor) bool {
	name := e.fitting(p)
	return name != "" && (oneOf(emulators, name) || oneOf(multiplexers, name) || oneOf(editors, name) || oneOf(served, name))
}

// fitting returns the name under which the tables may have a program, or "" if its file
// does not fit that name: anybody can give a program any name.
func (e *evidence) fitting(p proc.Ancestor) string {
	if p.Exe == "" { // of another user, or with rights from its file
		if e.system.privileged(p) {
			return program(p.Argv)
		}
		return ""
	}
	name, file := exeName(p), filepath.ToSlash(p.Exe)
	if slices.Contains([]string{"busybox", "toybox", "coreutils"}, name) && e.system.installed(p.Exe) { // many programs in one file
		return program(p.Argv)
	}
	if oneOf(scripted, name) {
		if editorScript(file) || editorScript(scriptOf(p)) {
			return "code"
		}
		name, file = e.fittingScript(p)
	}
	if name == "" || !e.fits(p, name, file) {
		return ""
	}
	return name
}

// fittingScript is fitting for an interpreter. Programs of npm's kind write their name
// over their arguments: "npm run x".
func (e *evidence) fittingScript(p proc.Ancestor) (name, file string) {
	titles := []string{"npm", "npx", "pnpm", "yarn"}
	if script := scriptOf(p); strings.Contains(script, "/") {
		return scriptName(script), script
	} else if script != "" { // a module of Python's, whose file is not known
		return script, ""
	}
	if name := program(p.Argv); len(p.Argv) == 1 && slices.Contains(titles, name) {
		return name, p.Exe
	}
	if name := exeName(p); oneOf(runners, name) && len(p.Argv) > 1 && slices.Contains([]string{"run", "task", "x"}, p.Argv[1]) { // bun run, deno task
		return name, p.Exe
	}
	return "", ""
}

// fits reports whether a file can be the program that has this name: it is where programs
// are installed or, if its maker ships it as a directory, in such a one.
func (e *evidence) fits(p proc.Ancestor, name, file string) bool {
	lower := strings.ToLower(file)
	bundle := strings.Contains(lower, ".app/contents/")
	switch {
	case file == "":
		return oneOf(served, name) && e.system.installed(p.Exe)
	case oneOf(electrons, name), name == "hyper", name == "tabby":
		return bundle || e.system.has(p, "resources/app") || e.system.has(p, "resources/app.asar")
	case oneOf(jetbrains, name):
		return bundle || e.system.has(p, "../product-info.json")
	case oneOf(zeds, name):
		return bundle || strings.Contains(lower, "/zed.app/") || strings.Contains(lower, "/zed/") || strings.HasSuffix(lower, "/libexec/zed-editor")
	case oneOf([]string{"warp", "warp-terminal*"}, name):
		return bundle || strings.Contains(lower, "/warpdotdev/")
	case name == "java":
		return slices.ContainsFunc(p.Argv, func(arg string) bool {
			return oneOf([]string{"com.intellij.idea.*", "com.jetbrains.*", "com.android.tools.idea.*", "org.eclipse.equinox.launcher.*", "org.netbeans.Main"}, arg) ||
				strings.Contains(arg, "/org.eclipse.equinox.launcher_")
		})
	case name == "tether", name == "tether-host":
		return e.system.own(file) || e.system.installed(file)
	}
	return e.system.installed(file)
}

// editorScript reports whether a file is of the server that an editor runs on a remote
// machine, or of its tunnel.
func editorScript(path string) bool {
	for _, part := range []string{"/.vscode-server/", "/.vscode-server-insiders/", "/.vscode/cli/servers/", "/.vscode-insiders/cli/servers/", "/.cursor-server/", "/.windsurf-server/",
		"/.vscodium-server/", "/code-server/", "/.vscode-remote/"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// agentAbove returns the agent that has started tether mcp, the first process of the
// line: its parent, or the next process above wrappers. ok is false if that is no agent.
func (e *evidence) agentAbove(principal string) (r AgentRecord, ok bool) {
	line := e.line
	if len(line) == 0 || line[0].Pid == e.daemon {
		return r, false
	}
	for i, p := range line[1:] {
		if below := line[i]; below.Session == below.Pid && below.TTY != 0 {
			return r, false // p is a terminal emulator or the like, known or not
		}
		switch e.kindOf(p) {
		case kindWrapper:
			continue
		case kindNever:
			return r, false
		case kindEditor:
			return AgentRecord{ID: p.ID, Principal: principal, Editor: true}, proc.HasTTYs // without them, terminals and agents look alike
		}
		return AgentRecord{ID: p.ID, Principal: principal, Group: e.groupOf(line[1+i:])}, true
	}
	return r, false
}

// groupOf returns the process group of the agent, the first process of line, if the agent
// or a wrapper right above it leads the group; else 0.
func (e *evidence) groupOf(line []proc.Ancestor) int {
	agent := line[0]
	if agent.Group == agent.Session {
		return 0
	}
	for i, p := range line {
		switch {
		case i > 0 && e.kindOf(p) != kindWrapper:
			return 0
		case p.Pid == agent.Group:
			return agent.Group
		}
	}
	return 0
}
