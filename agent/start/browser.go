package start

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tether/agent/command"
	"tether/internal/jsonspan"
	"tether/platform/proc"
)

// agentVar turns on, in Vite 8 and what is built on it, that errors of the page are
// printed, unless its configuration says otherwise
// (https://vite.dev/config/server-options#server-forwardconsole). A person's terminals
// have no other value of it than proc.DevServerMark.
const agentVar = "AI_AGENT"

// devServer is a program that serves pages while they are developed. docs/DEV-SERVERS.md
// has what each takes to print the errors of a page.
type devServer struct {
	packages string // the one whose version counts, after those through which it is installed
	since    [2]int // major and minor version that prints the errors; zero: none does
	variable bool   // it takes agentVar
	config   string // the configuration file, without its ending
	off      string // an expression for a setting that turns it off
	older    string // what versions before since take
}

// devServers are known by the names of their programs.
func devServers() map[string]devServer {
	vite := func(packages, config string) devServer {
		return devServer{packages: packages + " vite", since: [2]int{8, 0}, variable: true, config: config,
			off: `forwardConsole\s*:\s*false`, older: "update Vite to 8, or add a plugin that forwards the console to " + config}
	}
	none := devServer{}
	itself := devServer{since: [2]int{0, 1}}
	return map[string]devServer{
		"vite": vite("", "vite.config"), "astro": vite("astro", "astro.config"), "vitepress": vite("vitepress", "vite.config"),
		"nuxt": vite("nuxt @nuxt/vite-builder", "nuxt.config"), "nuxi": vite("nuxt @nuxt/vite-builder", "nuxt.config"),
		"react-router": vite("@react-router/dev", "vite.config"), "remix": vite("@remix-run/dev", "vite.config"),
		"storybook": vite("@storybook/builder-vite", "vite.config"), "ng": vite("@angular/build", "angular.json"),
		"next": {packages: "next", since: [2]int{16, 2}, config: "next.config", off: `browserToTerminal\s*:\s*false|logging\s*:\s*false`,
			older: "from 15.4 on, set experimental: { browserDebugInfoInTerminal: true } in next.config and start it again; before, update Next.js"},
		"rsbuild": {packages: "@rsbuild/core", since: [2]int{1, 5}, config: "rsbuild.config", off: `browserLogs\s*:\s*false`, older: "update Rsbuild"},
		"bun":     itself, "expo": itself,
		"webpack": none, "webpack-dev-server": none, "rspack": none, "react-scripts": none, "vue-cli-service": none, "parcel": none, "gatsby": none,
	}
}

// forwardBrowser returns the variable with which the request's dev server prints errors
// of the page, "" for none, and in one sentence what the person has to change where a
// variable does not do it. It only reads files of the project.
func forwardBrowser(r *Request, env []string) (set, say string) {
	read := command.Argv(r.Command)
	if r.Line != "" {
		read = command.Line(r.Line)
	}
	name, dir := serverOf(read, r.Cwd, maxScripts)
	server, ok := devServers()[name]
	switch {
	case !ok:
		return "", "errors of the page are not forwarded: no dev server is known in the command or its script (docs/DEV-SERVERS.md lists them)"
	case server.since == [2]int{}:
		return "", fmt.Sprintf("errors of the page are not forwarded: %s cannot (docs/DEV-SERVERS.md lists dev servers that can)", name)
	}
	if file := server.turnedOff(dir); file != "" {
		return "", fmt.Sprintf("errors of the page are not forwarded: a setting in %s turns that off; remove it and start again", file)
	}
	pkg, version := server.installed(dir)
	if version != "" && before(version, server.since) {
		return "", fmt.Sprintf("errors of the page may not be forwarded: %s %.20s does it only when told to, or not at all: %s", pkg, version, server.older)
	}
	taken := func(e string) bool { return strings.HasPrefix(e, agentVar+"=") && len(e) > len(agentVar)+1 }
	if !server.variable || r.ByAgent() && slices.ContainsFunc(env, taken) {
		return "", ""
	}
	return proc.DevServerMark, ""
}

const (
	maxScripts  = 5       // scripts that run one another
	maxManifest = 1 << 20 // bytes of a file of a project
	maxAbove    = 40      // directories above a project in which packages are looked for
)

// scriptRunners run the scripts of a package.json. Others run those of several packages,
// or have scripts of their own.
var scriptRunners = strings.Fields("npm pnpm yarn bun node rushx")

// serverOf returns the dev server that a command starts, itself or by a script of the
// project in dir, and the directory in which it runs: "" for none.
func serverOf(read *command.Reading, dir string, depth int) (name, in string) {
	for _, m := range read.Moves {
		switch {
		case !m.Fixed || strings.HasPrefix(m.Text, "~") || m.Text == "-":
			dir = "" // unknown
		case filepath.IsAbs(m.Text):
			dir = m.Text
		case dir != "":
			dir = filepath.Join(dir, m.Text)
		}
	}
	servers := devServers()
	for _, c := range slices.Backward(read.Commands) {
		name := program(c)
		run, runs := runners()[name]
		if _, ok := servers[name]; ok && (!runs || slices.ContainsFunc(c.Words, func(w command.Word) bool { return strings.HasSuffix(w.Text, ".html") })) {
			return name, dir
		}
		if !runs {
			continue
		}
		where, what := run.read(c)
		at := dir
		if where != "" {
			at = packageAt(dir, where)
		}
		if script := scriptOf(at, what); script != "" && depth > 0 && slices.Contains(scriptRunners, name) {
			if name, in := serverOf(command.Line(script), at, depth-1); name != "" {
				return name, in
			}
		}
		if _, ok := servers[what]; ok && slices.Contains(carriers, name) { // yarn vite
			return what, at
		}
	}
	return "", ""
}

// packageAt is the directory of the package that a runner's option names, by a path or,
// in a workspace, by its name.
func packageAt(dir, where string) string {
	if at := filepath.Join(dir, filepath.FromSlash(where)); !filepath.IsAbs(where) && manifest(at) != nil {
		return at
	}
	if filepath.IsAbs(where) {
		return where
	}
	at, err := filepath.EvalSymlinks(filepath.Join(dir, "node_modules", filepath.FromSlash(where)))
	if err != nil {
		return dir
	}
	return at
}

// manifestOf is what counts in a package.json.
type manifestOf struct {
	Version string            `json:"version"`
	Scripts map[string]string `json:"scripts"`
}

// manifest reads the package.json in a directory; nil if there is none.
func manifest(dir string) *manifestOf {
	var m manifestOf
	if jsonspan.Unmarshal(projectFile(filepath.Join(dir, "package.json")), &m) != nil {
		return nil
	}
	return &m
}

// scriptOf is the script of that name of the project in dir, "" if there is none.
func scriptOf(dir, name string) string {
	if m := manifest(dir); m != nil {
		return m.Scripts[name]
	}
	return ""
}

// projectFile reads a regular file of a project; nil if it cannot be read or is large, or
// if the project's directory is unknown.
func projectFile(name string) []byte {
	info, err := os.Stat(name)
	if err != nil || !filepath.IsAbs(name) || info.Mode().Type() != fs.FileMode(0) || info.Size() > maxManifest {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return data
}

// installed returns the package whose version counts, and that version as Node.js finds
// it from the directory: "" if it does not.
func (s devServer) installed(dir string) (pkg, version string) {
	for pkg = range strings.FieldsSeq(s.packages) {
		at, m := dir, (*manifestOf)(nil)
		for range maxAbove {
			if m = manifest(filepath.Join(at, "node_modules", filepath.FromSlash(pkg))); m != nil || filepath.Dir(at) == at {
				break
			}
			at = filepath.Dir(at)
		}
		if version = ""; m == nil {
			continue
		}
		version = m.Version
		// A package finds others from where it really is, not from a link to it.
		if real, err := filepath.EvalSymlinks(filepath.Join(at, "node_modules", filepath.FromSlash(pkg))); err == nil {
			dir = real
		}
	}
	return pkg, version
}

// turnedOff returns the name of the configuration file that turns it off, "" if none
// does.
func (s devServer) turnedOff(dir string) string {
	if s.off == "" {
		return ""
	}
	off := regexp.MustCompile(s.off)
	for _, ending := range []string{".ts", ".js", ".mjs", ".cjs", ".mts", ".cts"} {
		if off.Match(projectFile(filepath.Join(dir, s.config+ending))) {
			return s.config + ending
		}
	}
	return ""
}

// before reports whether a version is older than another one's major and minor number.
func before(version string, than [2]int) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return false
	}
	return major < than[0] || major == than[0] && minor < than[1]
}
