package local

import (
	"slices"
	"strings"

	"tether/platform/proc"
)

// Known programs by their names, as [program] returns them. A name that ends in * covers all names with that beginning.
var (
	// wrappers start the program that they are asked for and wait: the agent is above them. Shells are, too, see shells.
	wrappers = []string{"env", "npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uv", "uvx", "pipx", "tether", "timeout", "nice", "nohup", "setsid",
		"stdbuf", "time", "ionice", "chrt", "taskset", "direnv", "mise", "asdf", "volta", "nix", "nix-shell", "devbox", "dotenv", "dotenvx", "op", "xargs",
		"unshare", "bwrap", "firejail", "catchsegv", "strace", "script"}
	// scripted are interpreters whose first argument identifies them.
	scripted = []string{"node", "nodejs", "bun", "deno", "python*", "ruby*", "perl*", "tclsh*", "wish*", "php*", "lua*"}
	// shells are wrappers unless they lead their session: then a person types there.
	shells = []string{"sh", "bash", "dash", "zsh", "fish", "ash", "ksh*", "mksh", "busybox", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh*", "powershell", "cmd"}
	// never are programs that start the person's programs, so they are never agents.
	never = slices.Concat(managers, emulators, multiplexers)
	// managers start sessions and services.
	managers = []string{"init", "systemd*", "(sd-*", "launchd", "runit*", "runsv*", "s6-*", "openrc*", "supervise*", "supervisord", "dinit", "tini", "dumb-init", "catatonit",
		"docker*", "containerd*", "conmon", "crond", "cron", "atd", "anacron", "fcron", "login", "agetty", "getty", "sshd*", "dropbear", "telnetd", "mosh-server",
		"su", "sudo*", "doas", "run0", "pkexec", "gdm*", "sddm*", "lightdm*", "gnome-session*", "gnome-shell", "kwin*", "plasmashell", "ksmserver", "sway", "hyprland", "xinit", "startx", "dbus-*",
		"explorer", "services", "svchost", "winlogon", "userinit", "wininit", "sihost", "taskeng", "taskhostw", "finder", "dock", "loginwindow", "xpcproxy"}
	// emulators are terminals of other programs, on a screen or in a browser.
	emulators = []string{"xterm*", "uxterm", "rxvt*", "urxvt*", "gnome-terminal*", "ptyxis*", "kgx", "konsole", "yakuake", "xfce4-terminal", "mate-terminal", "lxterminal", "qterminal",
		"terminator", "tilix", "guake", "tilda", "st", "foot*", "alacritty", "kitty", "wezterm*", "ghostty", "rio", "contour", "cool-retro-term", "hyper", "tabby", "warp*", "terminal", "iterm*",
		"windowsterminal", "openconsole", "conhost", "mintty", "conemu*", "ttyd", "gotty"}
	multiplexers = []string{"tmux*", "screen", "zellij", "byobu*", "dtach", "abduco", "dvtm", "mprocs", "tether-host"}
	// batch are services that run programs for nobody who sits before them.
	batch = []string{"cron", "crond", "atd", "anacron", "fcron", "systemd*", "init", "supervise*", "runsv*", "s6-*"}
	// makers make terminals for programs, not for people. Interpreters and shells can, too, see makesTerminals.
	makers = []string{"script", "scriptlive", "expect", "autoexpect", "unbuffer", "empty", "faketty", "socat*", "rlwrap", "sexpect", "goexpect", "pexpect",
		"ld-*", "ld.so*"} // the system's loader runs any of them
	// served are scripts of interpreters whose terminals a person sees, in a browser or on a screen.
	served = []string{"jupyter*", "ipython*", "notebook*", "theia*", "wetty*", "butterfly*", "webssh*", "gateone*", "terminado*", "cockpit*"}
	// editors have terminals of their own, in which the person types.
	editors = []string{"code", "code-*", "code - *", "code helper*", "codium", "vscodium", "cursor", "cursor helper*", "cursor-nightly", "kiro", "trae", "antigravity", "windsurf*", "positron", "electron", "zed*", "idea*", "pycharm*", "webstorm*", "goland*", "clion*", "rider*", "phpstorm*",
		"rubymine*", "rustrover*", "datagrip*", "dataspell*", "fleet*", "studio*", "jetbrains*", "java", "emacs*", "nvim*", "vim*", "helix", "hx", "kakoune", "kak", "lapce*", "sublime_text", "gvim*", "node-vscode"}
)

// oneOf reports whether a table has the name.
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
	kindAgent   kind = iota // anything that no table has
	kindWrapper             // look above it
	kindNever               // no agent, and none above it
	kindEditor
)

// programKind looks into the tables. Shells of a session are the person's.
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

// makesTerminals reports whether a program that starts a session at a terminal is known not to do so for a person. Where the system tells
// which file it runs, the name that it gives itself does not count.
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

// agentAbove returns the agent that has started tether mcp, with which the lineage begins: its parent, or the next one above wrappers. ok
// is false where that is no agent.
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
			return AgentRecord{ID: p.ID, Principal: principal, Editor: true}, proc.HasTTYs // else its terminals could not be told from its agents
		}
		return AgentRecord{ID: p.ID, Principal: principal, Group: groupOf(line[1+i:], daemon)}, true
	}
	return r, false
}

// groupOf is the process group of the agent with which the line begins, if the agent leads it, or a wrapper right above does; else 0.
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
