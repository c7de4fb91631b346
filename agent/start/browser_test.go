package start

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/proc"
)

// project writes files of a project, given by their names, and returns its directory.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The dev server is found in a command, in a script of a project or of its packages, and
// gets the variable where its version takes it. Otherwise a sentence says what to change.
func TestForwardBrowser(t *testing.T) {
	const set = proc.DevServerMark
	vite := func(version string) map[string]string {
		return map[string]string{
			"package.json":                   `{"scripts": {"dev": "npm run dev:web", "dev:web": "NODE_ENV=development vite --port 3000 && true", "loop": "npm run loop", "api": "node server.js"}}`,
			"node_modules/vite/package.json": `{"version": "` + version + `"}`,
		}
	}
	with := func(files map[string]string, name, text string) map[string]string {
		files[name] = text
		return files
	}
	next := func(version string) map[string]string {
		return map[string]string{"package.json": `{"scripts": {"dev": "next dev"}}`, "node_modules/next/package.json": `{"version": "` + version + `"}`}
	}
	for _, c := range []struct {
		line      string
		files     map[string]string
		env       string
		agent     bool // asks for it
		set, says string
	}{
		{line: "vite", files: vite("8.4.0"), set: set},
		{line: "npm run dev", files: vite("8.4.0"), set: set},
		{line: "npx vite --host", files: vite("8.0.0-beta.1"), set: set},
		{line: "yarn vite", files: vite("10.0.0"), set: set},
		{line: "pnpm dev", files: vite("8.4.0"), set: set},
		{line: "bun run dev", files: vite("8.4.0"), set: set},
		{line: "node_modules/.bin/vite", files: vite("8.4.0"), set: set},
		{line: "npm run dev", files: vite("8.4.0"), env: agentVar + "=other", agent: true},
		{line: "npm run dev", files: vite("8.4.0"), env: agentVar + "=other", set: set},
		{line: "npm run dev", files: vite("8.4.0"), env: agentVar + "=", agent: true, set: set},
		{line: "npm run dev", files: vite("7.1.12"), says: "vite 7.1.12"},
		{line: "npm run dev", files: map[string]string{"package.json": `{"scripts": {"dev": "vite"}}`}, set: set},
		{line: "vite", files: with(vite("8.4.0"), "vite.config.ts", "export default { server: { forwardConsole: false } }"), says: "vite.config.ts"},
		{line: "npm run dev -w packages/web", files: with(vite("8.4.0"), "packages/web/package.json", `{"scripts": {"dev": "astro dev"}}`), set: set},
		{line: "npm --prefix packages/web run dev", files: with(vite("7.0.0"), "packages/web/package.json", `{"scripts": {"dev": "nuxt dev"}}`), says: "vite 7.0.0"},
		{line: "cd packages/web && npm run dev", files: with(vite("8.4.0"), "packages/web/package.json", `{"scripts": {"dev": "react-router dev"}}`), set: set},
		{line: "npm run dev", files: next("16.4.6")},
		{line: "npx next dev", files: next("15.5.6"), says: "browserDebugInfoInTerminal"},
		{line: "npx next dev", files: with(next("16.4.6"), "next.config.mjs", "export default { logging: false }"), says: "next.config.mjs"},
		{line: "npx rsbuild dev", files: nil},
		{line: "bun --port 1 ./index.html", files: nil},
		{line: "npx webpack serve", files: nil, says: "webpack cannot"},
		{line: "npm run loop", files: vite("8.4.0"), says: "no dev server is known"},
		{line: "npm run api", files: vite("8.4.0"), says: "no dev server is known"},
		{line: "npm run none", files: nil, says: "no dev server is known"},
		{line: "npm run dev", files: map[string]string{"package.json": "{", "node_modules/vite/package.json": "[]"}, says: "no dev server is known"},
		{line: "turbo dev", files: vite("8.4.0"), says: "no dev server is known"},
		{line: "cd \"$X\" && vite", files: nil, set: set},
		{line: "sleep 1", files: nil, says: "no dev server is known"},
	} {
		r := Request{SpawnRequest: localapi.SpawnRequest{Line: c.line, Cwd: project(t, c.files)}}
		if r.Actor = term.User; c.agent {
			r.Actor = term.Agent("bob")
		}
		got, says := forwardBrowser(&r, []string{"A=1", c.env})
		if got != c.set || (says == "") != (c.says == "") || !strings.Contains(says, c.says) {
			t.Errorf("%s: %q, %q; want %q, %q", c.line, got, says, c.set, c.says)
		}
	}
}

// Whoever starts it, the terminal has the variable, or a notice, only if that was asked.
func TestForwardBrowserInATerminal(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"node_modules/vite/package.json": `{"version": "8.4.0"}`})
	specs := Specs{Environment: func(context.Context, bool) ([]string, error) { return []string{"A=1"}, nil }, Report: func(string, string) {},
		LendTo: func(Request) ([]string, error) { return nil, nil }}
	for _, c := range []struct {
		command  string
		asked    bool
		set, say bool
	}{{"vite", true, true, false}, {"vite", false, false, false}, {"sleep", true, false, true}} {
		spec, err := specs.Spec(t.Context(), Request{SpawnRequest: localapi.SpawnRequest{Command: []string{c.command}, Cwd: dir, ForwardBrowser: c.asked, NoIntegration: true}})
		if err != nil {
			t.Fatal(err)
		}
		if set := slices.Contains(spec.Env, "AI_AGENT=tether"); set != c.set || (spec.Notice != "") != c.say {
			t.Errorf("%+v: %q, %q", c, spec.Env, spec.Notice)
		}
	}
}

// What a project has in place of a file, or far too much in one, is not read.
func TestForwardBrowserOfHostileProjects(t *testing.T) {
	dir := project(t, map[string]string{"package.json/x": "", "big/package.json": `{"scripts": {"dev": "vite"}}` + strings.Repeat(" ", maxManifest)})
	for _, cwd := range []string{dir, filepath.Join(dir, "big"), filepath.Join(dir, "none"), ""} {
		r := Request{SpawnRequest: localapi.SpawnRequest{Command: []string{"npm", "run", "dev"}, Cwd: cwd}}
		if got, says := forwardBrowser(&r, nil); got != "" || !strings.Contains(says, "no dev server") {
			t.Errorf("%q: %q, %q", cwd, got, says)
		}
	}
}
