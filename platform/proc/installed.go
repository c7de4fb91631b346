package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// homePlaces are the directories below a home in which package managers and people
// install programs.
var homePlaces = []string{"bin", "opt", ".local", "Applications", "go/bin", ".cargo", ".rustup", ".nix-profile", ".linuxbrew", ".npm-global", ".npm-packages", ".nvm",
	".fnm", ".volta", ".asdf", ".mise", ".proto", ".bun", ".deno", ".pyenv", ".rbenv", ".rvm", ".sdkman", ".ghcup", ".dotnet", ".pixi", ".conda", "miniconda3", "miniforge3",
	"anaconda3", "scoop", "AppData/Local/Programs", "AppData/Local/Microsoft/WindowsApps", "AppData/Roaming/npm", "AppData/Local/pnpm"}

// Installed reports whether a program's file is where the system, an administrator, a
// package manager, or a person by custom installs programs: a program there is what it is
// called, and one in a project's or a temporary directory need not be. It asks the disk
// only about files elsewhere.
func Installed(exe string) bool {
	if exe == "" {
		return false
	}
	path := filepath.ToSlash(exe)
	if strings.Contains(path, "/.mount_") { // an AppImage, which mounts itself in a temporary directory
		return true
	}
	if slices.ContainsFunc(systemPlaces(), func(place string) bool { return below(path, place) }) {
		return true
	}
	home, err := os.UserHomeDir()
	if err == nil && slices.ContainsFunc(homePlaces, func(place string) bool { return below(path, filepath.ToSlash(home)+"/"+place) }) {
		return true
	}
	return !Root() && ofAdministrator(exe)
}

// below reports whether a path is in a directory.
func below(path, dir string) bool {
	if foldsPaths {
		path, dir = strings.ToLower(path), strings.ToLower(dir)
	}
	return dir != "" && strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
