package termprofile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/installer/termprofile"
	"tether/internal/testkit/must"
)

const tether = "/usr/bin/tether"

// home has the given files, whose names are below it, and no variable.
func home(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func program(t *testing.T, goos, dir, id, path string) termprofile.Program {
	t.Helper()
	s := termprofile.System{GOOS: goos, Home: dir, Getenv: func(string) string { return "" }}
	for _, p := range termprofile.All(s, path) {
		if p.ID == id {
			return p
		}
	}
	t.Fatalf("%s has no %s", goos, id)
	return termprofile.Program{}
}

// text is what a place has: a file, or a text of dconf.
func text(t *testing.T, p termprofile.Place, dconf string) []byte {
	t.Helper()
	if p.Dconf {
		return []byte(dconf)
	}
	got, err := os.ReadFile(p.Path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return got
}

// Each program's file has the documented setting afterwards, and everything else that it
// had; a second time nothing changes, and the undoing restores it byte for byte.
func TestEachProgram(t *testing.T) {
	const dconf = "[/]\ndefault='b1dcc9dd-5262-4d8d-a863-c897e6d979b9'\nlist=['b1dcc9dd-5262-4d8d-a863-c897e6d979b9', 'aa0e4a0a-0000-4d8d-a863-c897e6d979b9']\n\n[:b1dcc9dd-5262-4d8d-a863-c897e6d979b9]\nfont='Mono 12'\n"
	for _, c := range []struct {
		goos, id, file, before string
		want                   []string
	}{
		{"linux", "vscode", ".config/Code/User/settings.json", "{\n  // mine\n  \"editor.fontSize\": 12, // large\n}\n", []string{`"terminal.integrated.profiles.linux": {`, `"path": "/usr/bin/tether"`, `"args": ["shell", "--window", "--"]`}},
		{"darwin", "vscode", "Library/Application Support/Code/User/settings.json", "{\n\t\"terminal.integrated.profiles.osx\": {\n\t\t\"zsh\": {\"path\": \"zsh\"}\n\t}\n}", []string{`"tether": {`, `"--window", "--login", "--"]`}},
		{"windows", "cursor", "AppData/Roaming/Cursor/User/settings.json", "{\r\n    \"a\": 1\r\n}\r\n", []string{`profiles.windows": {`, `"path": "/usr/bin/tether"`}},
		{"linux", "zed", ".config/zed/settings.json", "// Zed\n{\n  \"terminal\": {\n    \"dock\": \"bottom\"\n  }\n}\n", []string{`"shell": {`, `"with_arguments": {`, `"program": "/usr/bin/tether"`}},
		{"darwin", "iterm2", "", "", []string{`"Custom Command": "Yes"`, `"Command": "/usr/bin/tether shell --window --login"`, `"Guid": "`}},
		{"windows", "windows-terminal", "", "", []string{`"commandline": "\"/usr/bin/tether\" shell --window"`, `"name": "tether"`}},
		{"linux", "gnome-terminal", "", dconf, []string{"[:c3a4f8d2-70c5-4d0b-8a7e-1f0b6a2d9e41]\ncustom-command='/usr/bin/tether shell --window'\nuse-custom-command=true\nvisible-name='tether'\n", "-c897e6d979b9', 'c3a4f8d2-70c5-4d0b-8a7e-1f0b6a2d9e41']"}},
		{"linux", "konsole", "", "", []string{"Command=/usr/bin/tether shell --window\nName=tether\n"}},
		{"linux", "kitty", ".config/kitty/kitty.conf", "font_size 12\n# mine", []string{"\nshell /usr/bin/tether shell --window\n"}},
		{"linux", "wezterm", "", "", []string{`default_prog = { "/usr/bin/tether", "shell", "--window" }`}},
		{"linux", "ghostty", ".config/ghostty/config.ghostty", "theme = x\r\n", []string{"\r\ncommand = /usr/bin/tether shell --window\r\n"}},
		{"linux", "alacritty", ".config/alacritty/alacritty.toml", "# mine\n[terminal]\nosc52 = \"CopyPaste\"\n", []string{"[terminal.shell]\nprogram = \"/usr/bin/tether\"\nargs = [\"shell\",\"--window\"]\n"}},
		{"linux", "alacritty", ".config/alacritty/alacritty.yml", "font:\n  size: 9\n", []string{"\nshell:\n  program: \"/usr/bin/tether\"\n  args: [\"shell\", \"--window\"]\n"}},
		{"linux", "tmux", ".config/tmux/tmux.conf", "set -g mouse on\n", []string{`set -g default-command "exec /usr/bin/tether shell --window --login"`}},
		{"linux", "zellij", ".config/zellij/config.kdl", "// default_shell \"fish\"\npane_frames false\n", []string{"\ndefault_shell \"", "tether-shell\"\n"}},
	} {
		t.Run(c.goos+" "+c.id, func(t *testing.T) {
			files := map[string]string{}
			if c.file != "" {
				files[c.file] = c.before
			}
			p := program(t, c.goos, home(t, files), c.id, tether)
			place := p.Places[0]
			before := text(t, place, c.before)
			if c.file != "" && string(before) != c.before {
				t.Fatalf("it does not read %s but %s", c.file, place.Path)
			}
			after := must.Get(place.Added(before, false))(t)
			for _, want := range c.want {
				if !bytes.Contains(after, []byte(want)) {
					t.Errorf("no %q in\n%s", want, after)
				}
			}
			if again := must.Get(place.Added(after, false))(t); !bytes.Equal(again, after) {
				t.Errorf("again:\n%s", again)
			}
			if back := must.Get(place.Removed(after))(t); !bytes.Equal(back, before) {
				t.Errorf("undone: %q, want %q", back, before)
			}
			if same := must.Get(place.Removed(before))(t); !bytes.Equal(same, before) {
				t.Errorf("undone without having been done: %q", same)
			}
		})
	}
}

// The profile is made the default where a file does that, and the undoing takes that
// back, too. What the person has chosen stays.
func TestDefault(t *testing.T) {
	dir := home(t, nil)
	for id, c := range map[string]struct {
		place               int
		before, want, other string
	}{
		"vscode":         {0, "{}\n", `"terminal.integrated.defaultProfile.linux": "tether"`, `{"terminal.integrated.defaultProfile.linux": "zsh"}`},
		"gnome-terminal": {0, "", "[/]\nlist=['b1dcc9dd-5262-4d8d-a863-c897e6d979b9', 'c3a4f8d2-70c5-4d0b-8a7e-1f0b6a2d9e41']\ndefault='c3a4f8d2-70c5-4d0b-8a7e-1f0b6a2d9e41'\n", "[/]\ndefault='b1dcc9dd-5262-4d8d-a863-c897e6d979b9'\n"},
		"konsole":        {1, "[Desktop Entry]\nX=1\n\n[MainWindow]\nY=2\n", "[Desktop Entry]\nX=1\nDefaultProfile=tether.profile\n\n[MainWindow]", "[Desktop Entry]\nDefaultProfile=Mine.profile\n"},
	} {
		place := program(t, "linux", dir, id, tether).Places[c.place]
		after := must.Get(place.Added([]byte(c.before), true))(t)
		if id == "gnome-terminal" {
			i := bytes.Index(after, []byte("[/]\n"))
			if j := bytes.Index(after[i:], []byte("\n\n")); i >= 0 && j >= 0 && string(after[i:i+j+1]) != c.want {
				t.Errorf("%s: %s", id, after)
			}
		} else if !bytes.Contains(after, []byte(c.want)) {
			t.Errorf("%s: %s", id, after)
		}
		if back := must.Get(place.Removed(after))(t); string(back) != c.before && !(len(back) == 0 && strings.Trim(c.before, "{}\n") == "") {
			t.Errorf("%s, undone: %q", id, back)
		}
		if got, err := place.Added([]byte(c.other), true); err == nil {
			t.Errorf("%s: another default was replaced: %s", id, got)
		}
	}
}

// What cannot be understood, and what the person has set, is refused; nothing of it is
// removed by the undoing.
func TestRefused(t *testing.T) {
	dir := home(t, map[string]string{".config/alacritty/alacritty.yml": ""})
	for name, c := range map[string]struct{ id, text string }{
		"half a JSON file":      {"vscode", `{"a": `},
		"UTF-16":                {"vscode", "\xff\xfe{\x00}\x00"},
		"another profile":       {"vscode", `{"terminal.integrated.profiles.linux": {"tether": {"path": "fish"}}}`},
		"another shell":         {"zed", `{"terminal": {"shell": "system"}}`},
		"a section that is not": {"zed", `{"terminal": []}`},
		"a shell in YAML":       {"alacritty", "shell:\n  program: fish\n"},
		"a shell of zellij":     {"zellij", "default_shell \"fish\"\n"},
		"a program":             {"wezterm", "return {}\n"},
		"a list of profiles":    {"gnome-terminal", "[/]\nlist=@as []x\n"},
	} {
		place := program(t, "linux", dir, c.id, tether).Places[0]
		if got, err := place.Added([]byte(c.text), false); err == nil {
			t.Errorf("%s: became %q", name, got)
		}
		if got, err := place.Removed([]byte(c.text)); err == nil && string(got) != c.text {
			t.Errorf("%s: undone it is %q", name, got)
		}
	}
	for _, path := range []string{"/a/$x/tether", "/a/'x'/tether", "/a\n/tether", `/a"/tether`} {
		if got, err := program(t, "linux", dir, "kitty", path).Places[0].Added(nil, false); err == nil {
			t.Errorf("a strange path: %q", got)
		}
	}
	spaced := program(t, "linux", dir, "tmux", "/my programs/tether").Places[0]
	if got := must.Get(spaced.Added(nil, false))(t); !bytes.Contains(got, []byte(`"exec '/my programs/tether' shell`)) {
		t.Errorf("a path with a blank: %s", got)
	}
}

// A block of which the person has removed the end is left alone, and what they write
// behind it stays.
func TestBlocksThatWereEdited(t *testing.T) {
	place := program(t, "linux", home(t, nil), "kitty", tether).Places[0]
	after := string(must.Get(place.Added([]byte("a 1"), false))(t))
	if got := must.Get(place.Removed([]byte(after + "\nb 2\n")))(t); string(got) != "a 1\nb 2\n" {
		t.Errorf("with lines behind it: %q", got)
	}
	half := strings.TrimSuffix(after, "# tether: end")
	if got := must.Get(place.Removed([]byte(half)))(t); string(got) != half {
		t.Errorf("without its end: %q", got)
	}
}

func FuzzEdits(f *testing.F) {
	f.Add("list=[]\n[/]\nlist=['a']\n")
	f.Add("a\r\n# tether: end\n")
	f.Add("{\"terminal\": {}} // x")
	dir := f.TempDir()
	s := termprofile.System{GOOS: "linux", Home: dir, Getenv: func(string) string { return "" }}
	all := termprofile.All(s, tether)
	f.Fuzz(func(t *testing.T, before string) {
		for _, p := range all {
			after, err := p.Places[0].Added([]byte(before), true)
			if err != nil {
				continue
			}
			if again, err := p.Places[0].Added(after, true); err != nil || !bytes.Equal(again, after) {
				t.Errorf("%s: %q became %q and then %q, %v", p.ID, before, after, again, err)
			}
			_, _ = p.Places[0].Removed(after)
		}
	})
}
