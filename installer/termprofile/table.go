package termprofile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"tether/internal/lazyregexp"
	"tether/internal/progentry"
)

// System is what the table needs to know of the machine.
type System struct {
	GOOS   string // a value of runtime.GOOS
	Home   string
	Getenv func(name string) string
}

// Here returns the terminal programs of this machine, see All.
func Here(tether string) ([]Program, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	return All(System{GOOS: runtime.GOOS, Home: home, Getenv: os.Getenv}, tether), nil
}

// paths are the directories in which programs have their files.
type paths struct {
	System
	config string // of programs that follow the XDG specification
	data   string // likewise
	app    string // of applications, as the system has them
}

func (s System) paths() paths {
	in := func(variable string, otherwise ...string) string {
		if dir := s.Getenv(variable); filepath.IsAbs(dir) {
			return dir
		}
		return filepath.Join(append([]string{s.Home}, otherwise...)...)
	}
	p := paths{System: s, config: in("XDG_CONFIG_HOME", ".config"), data: in("XDG_DATA_HOME", ".local", "share")}
	switch s.GOOS {
	case "darwin":
		p.app = filepath.Join(s.Home, "Library", "Application Support")
	case "windows":
		p.app = in("APPDATA", "AppData", "Roaming")
	default:
		p.app = p.config
	}
	return p
}

// ids of profiles, which nobody else has.
const (
	itermID = "5E1D4B0C-2B8F-4E0A-9F55-7E74E7D1A3C6"
	gnomeID = "c3a4f8d2-70c5-4d0b-8a7e-1f0b6a2d9e41"
)

// All returns the terminal programs of the system, with the edits that make the program
// at the path tether their shell.
func All(s System, tether string) []Program {
	all := s.paths().all(tether)
	if s.GOOS != "windows" && !plainPath().MatchString(tether) {
		for i := range all {
			for j := range all[i].Places {
				all[i].Places[j].fault = fmt.Errorf("not every program reads the path %q as it is", tether)
			}
		}
	}
	return all
}

func (p paths) all(tether string) []Program {
	args := []string{"shell", "--window"}
	if p.GOOS == "darwin" { // where terminal programs start login shells
		args = append(args, "--login")
	}
	tasks := append(args[:len(args):len(args)], "--") // behind it, programs add a command to run
	all := []Program{
		p.code("vscode", "VS Code", "Code", "code", tether, tasks),
		p.code("cursor", "Cursor", "Cursor", "cursor", tether, tasks),
		p.zed(tether, tasks),
	}
	switch p.GOOS {
	case "windows":
		return append(all, p.windowsTerminal(tether, args), p.wezterm(tether, args), p.alacritty(tether, args))
	case "darwin":
		all = append(all, p.iterm(tether, args))
	default:
		all = append(all, p.gnomeTerminal(tether, args), p.konsole(tether, args))
	}
	return append(all, p.kitty(tether, args), p.wezterm(tether, args), p.ghostty(tether, args), p.alacritty(tether, args), p.tmux(tether), p.zellij(tether))
}

// commandLine returns a command line that shells, and programs that split words as they
// do, read alike.
func commandLine(tether string, args []string) string {
	return strings.Join(append([]string{quoted(tether)}, args...), " ")
}

func quoted(path string) string {
	if strings.Contains(path, " ") {
		return "'" + path + "'"
	}
	return path
}

// plainPath matches paths that all programs read as they are.
var plainPath = lazyregexp.New(`^[\pL\pN /._+:@,=-]+$`)

func asJSON(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // strings, lists and maps can always be encoded
	}
	return string(text) + "\n"
}

// code is VS Code, or a program made from it
// (https://code.visualstudio.com/docs/terminal/profiles).
func (p paths) code(id, name, dir, command, tether string, args []string) Program {
	system := map[string]string{"darwin": "osx", "windows": "windows"}[p.GOOS]
	if system == "" {
		system = "linux"
	}
	profiles, main := "terminal.integrated.profiles."+system, "terminal.integrated.defaultProfile."+system
	start := progentry.Entry{Command: tether, Args: args}
	file := filepath.Join(p.app, dir, "User", "settings.json")
	return Program{ID: id, Name: name, commands: []string{command}, seen: []string{filepath.Dir(file)},
		Hand: fmt.Sprintf("in %s: %q: {\"tether\": {\"path\": %q, \"args\": [\"%s\"]}}; as the default: %q: \"tether\"", file, profiles, tether, strings.Join(args, `", "`), main),
		Places: []Place{{Path: file,
			edits: []edit{entry{progentry.Format{Section: profiles, Style: progentry.Path}, "tether", start}}, main: []edit{member{main, "tether"}}}}}
}

// zed has one shell for all its terminals (https://zed.dev/docs/terminal).
func (p paths) zed(tether string, args []string) Program {
	file := first(filepath.Join(p.config, "zed", "settings.json"), filepath.Join(p.app, "Zed", "settings.json"))
	if p.GOOS == "windows" {
		file = filepath.Join(p.app, "Zed", "settings.json")
	}
	return Program{ID: "zed", Name: "Zed", Sole: true, commands: []string{"zed", "zeditor"}, seen: []string{filepath.Dir(file)},
		Hand:   fmt.Sprintf("in %s: \"terminal\": {\"shell\": {\"with_arguments\": {\"program\": %q, \"args\": [\"%s\"]}}}", file, tether, strings.Join(args, `", "`)),
		Places: []Place{{Path: file, edits: []edit{entry{progentry.Format{Section: "terminal", Style: progentry.Nested}, "shell", progentry.Entry{Command: tether, Args: args}}}}}}
}

// iterm has profiles in files of their own
// (https://iterm2.com/documentation-dynamic-profiles.html).
func (p paths) iterm(tether string, args []string) Program {
	dir := filepath.Join(p.app, "iTerm2")
	profile := map[string]string{"Name": "tether", "Guid": itermID, "Custom Command": "Yes", "Command": commandLine(tether, args)}
	return Program{ID: "iterm2", Name: "iTerm2", seen: []string{dir},
		Hand:          "in a new profile, Command: " + commandLine(tether, args),
		DefaultByHand: "Settings, Profiles, tether, Other Actions, Set as Default",
		Places:        []Place{{Path: filepath.Join(dir, "DynamicProfiles", "tether.json"), edits: []edit{whole{text: asJSON(map[string]any{"Profiles": []any{profile}})}}}}}
}

// windowsTerminal has profiles in files of their own
// (https://learn.microsoft.com/windows/terminal/json-fragment-extensions).
func (p paths) windowsTerminal(tether string, args []string) Program {
	local := p.Getenv("LOCALAPPDATA")
	if !filepath.IsAbs(local) {
		local = filepath.Join(p.Home, "AppData", "Local")
	}
	line := `"` + tether + `" ` + strings.Join(args, " ")
	file := filepath.Join(local, "Microsoft", "Windows Terminal", "Fragments", "tether", "tether.json")
	return Program{ID: "windows-terminal", Name: "Windows Terminal", commands: []string{"wt"}, seen: []string{filepath.Join(local, "Packages", "Microsoft.WindowsTerminal_8wekyb3d8bbwe")},
		Hand:          "in a new profile, the command line: " + line,
		DefaultByHand: "Settings, Startup, Default profile",
		Places:        []Place{{Path: file, edits: []edit{whole{text: asJSON(map[string]any{"profiles": []any{map[string]string{"name": "tether", "commandline": line}}})}}}}}
}

// gnomeTerminal has its profiles in dconf, by its schemas org.gnome.Terminal.ProfilesList
// and org.gnome.Terminal.Legacy.Profile.
func (p paths) gnomeTerminal(tether string, args []string) Program {
	return Program{ID: "gnome-terminal", Name: "GNOME Terminal", commands: []string{"gnome-terminal"},
		Hand: "in a new profile, Run a custom command: " + commandLine(tether, args),
		Places: []Place{{Path: "/org/gnome/terminal/legacy/profiles:/", Dconf: true,
			edits: []edit{gnome{gnomeID, commandLine(tether, args)}}, main: []edit{setting{"/", "default", "'" + gnomeID + "'"}}}}}
}

// konsole has a file for each profile; konsolerc names the default one
// (https://docs.kde.org/stable5/en/konsole/konsole/profiles.html).
func (p paths) konsole(tether string, args []string) Program {
	text := "[General]\nCommand=" + commandLine(tether, args) + "\nName=tether\nParent=FALLBACK/\n"
	return Program{ID: "konsole", Name: "Konsole", commands: []string{"konsole"},
		Hand: "in a new profile, Command: " + commandLine(tether, args),
		Places: []Place{{Path: filepath.Join(p.data, "konsole", "tether.profile"), edits: []edit{whole{text: text}}},
			{Path: filepath.Join(p.config, "konsolerc"), main: []edit{setting{"Desktop Entry", "DefaultProfile", "tether.profile"}}}}}
}

// sole is a program whose file gets lines at its end.
func sole(id, name, command, file string, b block) Program {
	return Program{ID: id, Name: name, Sole: true, commands: []string{command}, seen: []string{file},
		Hand: "in " + file + ": " + strings.Join(b.lines, "; "), Places: []Place{{Path: file, edits: []edit{b}}}}
}

// kitty: the last of several lines counts (https://sw.kovidgoyal.net/kitty/conf/).
func (p paths) kitty(tether string, args []string) Program {
	dir := filepath.Join(p.config, "kitty")
	if own := p.Getenv("KITTY_CONFIG_DIRECTORY"); filepath.IsAbs(own) {
		dir = own
	}
	return sole("kitty", "kitty", "kitty", filepath.Join(dir, "kitty.conf"), block{comment: "#", lines: []string{"shell " + commandLine(tether, args)}})
}

// ghostty: the last of several lines counts (https://ghostty.org/docs/config).
func (p paths) ghostty(tether string, args []string) Program {
	dir, mac := filepath.Join(p.config, "ghostty"), filepath.Join(p.app, "com.mitchellh.ghostty")
	file := first(filepath.Join(dir, "config"), filepath.Join(dir, "config.ghostty"))
	if p.GOOS == "darwin" { // read last
		file = first(filepath.Join(mac, "config.ghostty"), filepath.Join(mac, "config"), file)
		if !exists(file) {
			file = filepath.Join(dir, "config")
		}
	}
	return sole("ghostty", "Ghostty", "ghostty", file, block{comment: "#", lines: []string{"command = " + commandLine(tether, args)}})
}

// tmux starts login shells on all systems (tmux(1), default-command).
func (p paths) tmux(tether string) Program {
	file := first(filepath.Join(p.Home, ".tmux.conf"), filepath.Join(p.config, "tmux", "tmux.conf"))
	return sole("tmux", "tmux", "tmux", file, block{comment: "#", lines: []string{`set -g default-command "exec ` + commandLine(tether, []string{"shell", "--window", "--login"}) + `"`}})
}

// zellij's shell has no arguments: it is a script
// (https://zellij.dev/documentation/options). The first of several lines counts.
func (p paths) zellij(tether string) Program {
	dir := filepath.Join(p.config, "zellij")
	if own := p.Getenv("ZELLIJ_CONFIG_DIR"); filepath.IsAbs(own) {
		dir = own
	} else if mac := filepath.Join(p.app, "org.Zellij-Contributors.Zellij"); p.GOOS == "darwin" && !exists(dir) && exists(mac) {
		dir = mac
	}
	script := filepath.Join(dir, "tether-shell")
	z := sole("zellij", "zellij", "zellij", filepath.Join(dir, "config.kdl"),
		block{comment: "//", lines: []string{fmt.Sprintf("default_shell %q", script)}, taken: regexp.MustCompile(`(?m)^\s*default_shell\b`)})
	z.Places = append(z.Places, Place{Path: script, Mode: 0o700, edits: []edit{whole{text: "#!/bin/sh\nexec " + commandLine(tether, []string{"shell", "--window"}) + ` "$@"` + "\n"}}})
	return z
}

// alacritty: TOML since 0.13, with terminal.shell since 0.14; before that YAML
// (https://alacritty.org/config-alacritty.html).
func (p paths) alacritty(tether string, args []string) Program {
	base := filepath.Join(p.config, "alacritty", "alacritty")
	if p.GOOS == "windows" {
		base = filepath.Join(p.app, "alacritty", "alacritty")
	}
	file := first(base+".toml", filepath.Join(p.Home, ".alacritty.toml"), base+".yml")
	a := Program{ID: "alacritty", Name: "Alacritty", Sole: true, commands: []string{"alacritty"}, seen: []string{file}}
	a.Hand = fmt.Sprintf("in %s: [terminal.shell] program = %q, args = [\"%s\"]", file, tether, strings.Join(args, `", "`))
	change := edit(entry{progentry.Format{Section: "terminal", TOML: true, Style: progentry.Program}, "shell", progentry.Entry{Command: tether, Args: args}})
	if filepath.Ext(file) == ".yml" {
		change = block{comment: "#", taken: regexp.MustCompile(`(?m)^["']?shell["']?\s*:`),
			lines: []string{"shell:", fmt.Sprintf("  program: %q", tether), `  args: ["` + strings.Join(args, `", "`) + `"]`}}
	}
	a.Places = []Place{{Path: file, edits: []edit{change}}}
	return a
}

// wezterm has a program as its configuration, which only a new file can have from here
// (https://wezterm.org/config/files.html).
func (p paths) wezterm(tether string, args []string) Program {
	file := first(filepath.Join(p.Home, ".wezterm.lua"), filepath.Join(p.config, "wezterm", "wezterm.lua"))
	if own := p.Getenv("WEZTERM_CONFIG_FILE"); filepath.IsAbs(own) {
		file = own
	}
	line := fmt.Sprintf("default_prog = { %q, \"%s\" }", tether, strings.Join(args, `", "`))
	return Program{ID: "wezterm", Name: "WezTerm", Sole: true, commands: []string{"wezterm"}, seen: []string{file},
		Hand:   "in " + file + ": config." + line,
		Places: []Place{{Path: file, edits: []edit{whole{mark: mark, text: "-- " + mark + "\nreturn {\n  " + line + ",\n}\n"}}}}}
}
