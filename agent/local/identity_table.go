package local

import (
	"slices"
	"strings"

	"tether/platform/proc"
)

// Known programs by their names, as [program] returns them. A name that ends in * covers all names with that beginning.
var (
	// wrappers start the program that their arguments name and wait for it, so the agent is above them. Shells can be wrappers, too, see
	// shells.
	wrappers = []string{"env", "npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uv", "uvx", "pipx", "tether", "timeout", "nice", "nohup", "setsid",
		"stdbuf", "time", "ionice", "chrt", "taskset", "direnv", "mise", "asdf", "volta", "nix", "nix-shell", "devbox", "dotenv", "dotenvx", "op", "xargs",
		"unshare", "bwrap", "firejail", "catchsegv", "strace", "script"}
	// scripted are interpreters whose first argument identifies them.
	scripted = []string{"node", "nodejs", "bun", "deno", "python*", "ruby*", "perl*", "tclsh*", "wish*", "php*", "lua*"}
	// shells are wrappers unless they lead their session: then a person types in them.
	shells = []string{"sh", "bash", "dash", "zsh", "fish", "ash", "ksh*", "mksh", "busybox", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh*", "powershell", "cmd"}
	// never has programs that start the person's programs, so they are never agents.
	never = slices.Concat(managers, emulators, multiplexers)
	// managers start sessions and services.
	managers = []string{"init", "systemd*", "(sd-*", "launchd", "runit*", "runsv*", "s6-*", "openrc*", "supervise*", "supervisord", "dinit", "tini", "dumb-init", "catatonit",
		"docker*", "containerd*", "conmon", "crond", "cron", "atd", "anacron", "fcron", "login", "agetty", "getty", "sshd*", "dropbear", "telnetd", "mosh-server",
		"su", "sudo*", "doas", "run0", "pkexec", "gdm*", "sddm*", "lightdm*", "gnome-session*", "gnome-shell", "kwin*", "plasmashell", "ksmserver", "sway", "hyprland", "xinit", "startx", "dbus-*",
		"explorer", "services", "svchost", "winlogon", "userinit", "wininit", "sihost", "taskeng", "taskhostw", "finder", "dock", "loginwindow", "xpcproxy"}
	// emulators show terminals to a person, on a screen or in a browser.
	emulators = []string{"xterm*", "uxterm", "rxvt*", "urxvt*", "gnome-terminal*", "ptyxis*", "kgx", "konsole", "yakuake", "xfce4-terminal", "mate-terminal", "lxterminal", "qterminal",
		"terminator", "tilix", "guake", "tilda", "st", "foot*", "alacritty", "kitty", "wezterm*", "ghostty", "rio", "contour", "cool-retro-term", "hyper", "tabby", "warp*", "terminal", "iterm*",
		"windowsterminal", "openconsole", "conhost", "mintty", "conemu*", "ttyd", "gotty"}
	multiplexers = []string{"tmux*", "screen", "zellij", "byobu*", "dtach", "abduco", "dvtm", "mprocs", "tether-host"}
	// batch has services that run programs without a person.
	batch = []string{"cron", "crond", "atd", "anacron", "fcron", "systemd*", "init", "supervise*", "runsv*", "s6-*"}
	// makers make terminals for programs, not for people. Interpreters and shells can, too, see makesTerminals.
	makers = []string{"script", "scriptlive", "expect", "autoexpect", "unbuffer", "empty", "faketty", "socat*", "rlwrap", "sexpect", "goexpect", "pexpect",
		"ld-*", "ld.so*"} // the system's loader can run any program
	// served has scripts of interpreters whose terminals a person sees, in a browser or on a screen.
	served = []string{"jupyter*", "ipython*", "notebook*", "theia*", "wetty*", "butterfly*", "webssh*", "gateone*", "terminado*", "cockpit*"}
	// editors are programs with terminals of their own, in which the person types.
	editors = []string{"code", "code-*", "code - *", "code helper*", "codium", "vscodium", "cursor", "cursor helper*", "cursor-nightly", "kiro", "trae", "antigravity", "windsurf*", "positron", "electron", "zed*", "idea*", "pycharm*", "webstorm*", "goland*", "clion*", "rider*", "phpstorm*",
		"rubymine*", "rustrover*", "datagrip*", "dataspell*", "fleet*", "studio*", "jetbrains*", "java", "emacs*", "nvim*", "vim*", "helix", "hx", "kakoune", "kak", "lapce*", "sublime_text", "gvim*", "node-vscode"}
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

// kind is a program's role in finding the agent's process.
type kind uint8

const (
	kindAgent   kind = iota // any program that is in no table
	kindWrapper             // look above it
	kindNever               // neither it nor a process above it is an agent
	kindEditor
)

// programKind looks up a program in the tables. A shell that leads its session belongs to the person.
func programKind(p proc.Ancestor, daemon int) kind {
	name := program(p.Argv)
	switch {
	case p.Pid <= 1, p.Pid == daemon, name == "", oneOf(never, name):
		return kindNever
	case oneOf(shells, name) && p.Session == p.Pid:
		return kindNever
	case oneOf(shells, name), oneOf(wrappers, name):
		return kindWrapper
	}
	if oneOf(scripted, name) {
		if i := slices.IndexFunc(p.Argv[1:], func(a string) bool { return !strings.HasPrefix(a, "-") }); i >= 0 {
			script := program([]string{strings.TrimSuffix(strings.TrimSuffix(p.Argv[1+i], ".js"), "-cli")})
			switch {
			case oneOf(wrappers, script):
				return kindWrapper
			case editorScript(p.Argv[1+i]):
				return kindEditor
			}
		}
		return kindAgent
	}
	if oneOf(editors, name) {
		return kindEditor
	}
	return kindAgent
}

// makesTerminals reports whether a program that starts a session at a terminal is known to do so for a program, not for a person. If the
// system tells which file the program runs, the name that it gives itself does not count.
func makesTerminals(p proc.Ancestor) bool {
	name := program(p.Argv)
	if p.Exe != "" {
		name = program([]string{p.Exe})
	}
	if !oneOf(scripted, name) {
		return oneOf(makers, name) || oneOf(shells, name)
	}
	return !slices.ContainsFunc(p.Argv[min(1, len(p.Argv)):], func(arg string) bool {
		script := program([]string{strings.TrimSuffix(strings.TrimSuffix(arg, ".js"), ".py")})
		return oneOf(never, script) || oneOf(editors, script) || oneOf(served, script) || editorScript(arg)
	})
}

// editorScript reports whether a script is the server that an editor runs on a remote machine.
func editorScript(path string) bool {
	for _, part := range []string{"/.vscode-server/", "/.vscode-server-insiders/", "/.cursor-server/", "/.windsurf-server/", "/.vscodium-server/", "/code-server/", "/.vscode-remote/"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// agentAbove returns the agent that has started tether mcp, the first process of the lineage: its parent, or the next process above
// wrappers. ok is false if that is no agent.
func agentAbove(line []proc.Ancestor, daemon int, principal string) (r AgentRecord, ok bool) {
	if len(line) == 0 || line[0].Pid == daemon {
		return r, false
	}
	for i, p := range line[1:] {
		if below := line[i]; below.Session == below.Pid && below.TTY != 0 {
			return r, false // p is a terminal emulator or the like, known or not
		}
		switch programKind(p, daemon) {
		case kindWrapper:
			continue
		case kindNever:
			return r, false
		case kindEditor:
			return AgentRecord{ID: p.ID, Principal: principal, Editor: true}, proc.HasTTYs // without them, terminals and agents look alike
		}
		return AgentRecord{ID: p.ID, Principal: principal, Group: groupOf(line[1+i:], daemon)}, true
	}
	return r, false
}

// groupOf returns the process group of the agent, the first process of line, if the agent or a wrapper right above it leads the group; else
// 0.
func groupOf(line []proc.Ancestor, daemon int) int {
	agent := line[0]
	if agent.Group == agent.Session {
		return 0
	}
	for i, p := range line {
		switch {
		case i > 0 && programKind(p, daemon) != kindWrapper:
			return 0
		case p.Pid == agent.Group:
			return agent.Group
		}
	}
	return 0
}
