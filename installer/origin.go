package installer

import (
	"path/filepath"
	"strings"
)

// Origin tells how a program came to its path, and the command that brings a newer
// version. The command is "" if there is none that is known. home is the user's home
// directory; base is the address of the releases, or "". It only looks at the path, whose
// symbolic links the caller has resolved: no package manager is asked.
func Origin(path, home, base string) (how, update string) {
	p, dir := filepath.ToSlash(path), filepath.ToSlash(filepath.Dir(path))
	within := func(part string) bool { return strings.Contains(p, part) }
	windows := strings.HasSuffix(p, ".exe")
	switch {
	case within("/_npx/"):
		return "with npx, for this time", ""
	case within("/node_modules/"):
		return "with npm", "npm install --global " + npmPackage(p) + "@latest"
	case within("/Cellar/"):
		return "with Homebrew", "brew upgrade tether"
	case within("/scoop/apps/"):
		return "with Scoop", "scoop update tether"
	case within("/nix/store/"):
		return "with Nix", "nix profile upgrade tether"
	case windows && within("/AppData/Local/Programs/tether/"):
		return "with the installer for Windows (.msi)", "winget upgrade tether, or the installer of the newer version"
	case !windows && (dir == "/usr/bin" || dir == "/bin"):
		return "with a package of the system", "the system's package manager with the newer package"
	case home != "" && dir == filepath.ToSlash(filepath.Join(home, ".local", "bin")):
		if base == "" {
			return "into ~/.local/bin, as the install script does", "the install script, again"
		}
		if windows {
			return "into ~/.local/bin, as the install script does", "irm " + base + "/install.ps1 | iex"
		}
		return "into ~/.local/bin, as the install script does", "curl -fsSL " + base + "/install.sh | sh"
	}
	return "by hand", ""
}

// npmPackage is the package that depends on the package of the system in which the
// program is: its name ends with system and processor.
func npmPackage(path string) string {
	_, rest, _ := strings.Cut(path[strings.LastIndex(path, "/node_modules/"):], "/node_modules/")
	words := strings.Split(rest, "/")
	name := words[0]
	if strings.HasPrefix(name, "@") && len(words) > 1 {
		name += "/" + words[1]
	}
	parts := strings.Split(name, "-")
	return strings.Join(parts[:max(1, len(parts)-2)], "-")
}
