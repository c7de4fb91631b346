package web_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// framework is a dev server and its project in testdata/frameworks. The page there has a
// text, a style sheet and a picture.
type framework struct {
	name   string
	tools  string // the directory below bin/tools that has its packages, and gets the project; "" for none
	needs  string // one of these packages, or else a program
	run    string // the command; NODE is the program, BIN the directory of the packages' programs, PORT the port
	path   string // of the page
	source string // the file with the page's text
	hot    hot
	broken string // the path of a page that breaks, "" for none
	prints string // what the server prints of that
}

// hot is what happens in a browser after an edit.
type hot string

const (
	nothing hot = "nothing, until a person reloads the page"
	reloads hot = "the page reloads itself"
	inPlace hot = "the page changes in place"
)

// frameworks are tried in each run. scripts/test-tools.sh installs their packages.
var frameworks = []framework{
	{"vite", "pages", "vite", "NODE BIN/vite --port PORT", "/", "src/said.ts", inPlace, "/src/broken.ts", "src/broken.ts:1:21"},
	{"next", "pages", "next", "NODE BIN/next dev --port PORT", "/", "app/page.jsx", inPlace, "/broken", "app/broken/page.jsx"},
	{"webpack", "pages", "webpack-dev-server", "NODE BIN/webpack serve --port PORT --client-web-socket-url auto://0.0.0.0:0/ws", "/", "wds/said.js", inPlace, "", ""},
	{"flask", "", "/usr/bin/flask", "/usr/bin/flask --debug run --port PORT", "/", "templates/page.html", nothing, "/broken", "IndexError: list index out of range"},
	{"go", "", "go", "go run main.go PORT", "/", "public/said.js", reloads, "", ""},
}

// moreFrameworks are tried if TETHER_FRAMEWORKS is all, or names them. For that,
// scripts/test-tools.sh frameworks installs their packages.
var moreFrameworks = []framework{
	{"astro", "astro", "astro", "NODE BIN/astro dev --port PORT", "/", "src/pages/index.astro", reloads, "/broken", "src/pages/broken.astro"},
	{"sveltekit", "sveltekit", "@sveltejs/kit", "NODE BIN/vite dev --port PORT", "/", "src/routes/+page.svelte", inPlace, "", ""},
	{"nuxt", "nuxt", "nuxt", "NODE BIN/nuxt dev --port PORT", "/", "app/app.vue", inPlace, "", ""},
	{"storybook", "storybook", "storybook", "NODE BIN/storybook dev --ci --port PORT", "/iframe.html?id=page--said&viewMode=story", "src/page.stories.js", inPlace, "", ""},
	{"angular", "angular", "@angular/cli", "NODE BIN/ng serve --port PORT", "/", "src/main.ts", reloads, "", ""},
	{"django", "", "/usr/bin/django-admin", "/usr/bin/python3 manage.py runserver PORT", "/", "templates/page.html", nothing, "/broken", "IndexError: list index out of range"},
	{"rails", "", "/usr/bin/rails", "rackup --port PORT", "/", "views/pages/show.html.erb", nothing, "/broken", "outside of array bounds"},
}

// project writes the framework's project. It returns its directory, or "" if what it
// needs is missing.
func (f *framework) project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var err error
	if f.tools == "" {
		_, err = exec.LookPath(f.needs)
	} else if dir, err = filepath.EvalSymlinks(filepath.Join(must.Get(filepath.Abs("../../bin/tools"))(t), f.tools)); err == nil {
		_, err = os.Stat(filepath.Join(dir, "node_modules", f.needs))
	}
	if err != nil {
		return ""
	}
	from := os.DirFS(filepath.Join("testdata/frameworks", f.name))
	must.Do(t, fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err != nil || d.IsDir() {
			return cmp.Or(err, os.MkdirAll(to, 0o755))
		}
		text, err := fs.ReadFile(from, name)
		return cmp.Or(err, os.WriteFile(to, text, 0o644))
	}))
	return dir
}

// command is the one that starts the framework's server.
func (f *framework) command(t *testing.T, port int) []string {
	node := must.Get(filepath.Abs("../../bin/tools/node22/node_modules/node/bin/node"))(t)
	return strings.Fields(strings.NewReplacer("NODE", node, "BIN", "node_modules/.bin", "PORT", fmt.Sprint(port)).Replace(f.run))
}

// trial is a framework whose server runs in a terminal.
type trial struct {
	framework
	dir  string
	port int
}

// Pages of real dev servers, in a real browser: scripts, style sheets and pictures come,
// the browser asks nobody else, and an edit shows as it does without a host in between.
func TestFrameworks(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	b := newBrowser(t)
	all := frameworks
	if wanted := os.Getenv("TETHER_FRAMEWORKS"); wanted != "" {
		all = slices.DeleteFunc(append(all, moreFrameworks...), func(f framework) bool {
			return wanted != "all" && !slices.Contains(strings.Split(wanted, ","), f.name)
		})
	}
	s := newShop(t)
	var trials []*trial
	for _, f := range all { // all start at the same time
		tr := &trial{f, f.project(t), testkit.FreePort(t)}
		trials = append(trials, tr)
		if tr.dir != "" {
			s.tether(tr.dir, append([]string{"run", "-d", "--name", f.name, "--"}, f.command(t, tr.port)...)...)
		}
	}
	b.do("open", nil, nil)
	b.do("goto", args{"url": s.page}, nil)
	for _, tr := range trials {
		t.Run(tr.name, func(t *testing.T) {
			if tr.dir == "" {
				t.Skipf("no %s; scripts/test-tools.sh installs it where it can", tr.name)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the terminal has\n%s", s.tether("", "read", tr.name))
				}
				s.tether("", "kill", tr.name)
			})
			b.t = t
			origin := s.preview(t, b, tr)
			defer b.do("close", nil, nil)
			tr.try(t, b, s.page, origin)
			if tr.broken != "" {
				s.fetchBroken(t, tr)
			}
		})
	}
	b.t = t
}

// preview lends a framework's port once the server listens, clicks it on the host's page,
// and returns the preview's origin. It opens a window.
func (s *shop) preview(t *testing.T, b *browser, tr *trial) string {
	t.Helper()
	port := fmt.Sprint(tr.port)
	s.tether("", "wait", tr.name, "--port", port, "--timeout", testkit.Patience.String())
	s.tether("", "lend", tr.name, "--port", port)
	// Terminals of one checkout have its branch behind their names.
	link := "[...document.querySelectorAll('nav a')].find(a => a.querySelector('.name')?.textContent.split(' ')[0] === '" + tr.name + "')"
	b.wait(link + " !== undefined")
	b.do("eval", args{"js": link + ".click()"}, nil)
	b.wait("document.querySelector('#facts .port')?.textContent === 'open port " + port + "'")
	b.do("click", args{"selector": "#facts .port"}, nil)
	b.do("window", args{"n": 1}, nil)
	b.wait("location.hostname.startsWith('" + port + "-') && location.hostname.endsWith('.localhost')")
	return b.text("location.origin")
}

// fetchBroken asks for a page that breaks, as an agent at the host. One answer has the
// server's error and what it printed about it.
func (s *shop) fetchBroken(t *testing.T, tr *trial) {
	t.Helper()
	var a agenttools.FetchAnswer
	s.use(t, "fetch_page", map[string]any{"terminalId": tr.name, "port": tr.port, "path": tr.broken}, &a)
	if a.Status != http.StatusInternalServerError || a.Body == "" || a.Printed == nil || !strings.Contains(a.Printed.Text, tr.prints) || len(a.Printed.Problems) == 0 && tr.name != "rails" { // whose log has no problem that is known
		t.Errorf("an agent gets %+v; the server printed %+v", a, a.Printed)
	}
}

// try looks at the page and edits it.
func (tr *trial) try(t *testing.T, b *browser, host, origin string) {
	t.Helper()
	began := time.Now()
	var status int
	b.do("goto", args{"url": origin + tr.path}, &status)
	if status != http.StatusOK {
		t.Errorf("the page has the status %d", status)
	}
	says := func(text string) string { return "document.querySelector('#said')?.textContent === '" + text + "'" }
	b.wait(says("one"))
	b.wait("document.querySelector('#pic').naturalWidth > 0")
	b.wait("getComputedStyle(document.querySelector('#said')).color === 'rgb(1, 2, 3)'")
	shown := time.Since(began)
	b.do("eval", args{"js": "window.kept = true"}, nil)
	tr.edit(t, b, says("two"))
	var kept bool
	b.do("eval", args{"js": "window.kept === true"}, &kept)
	if kept != (tr.hot == inPlace) {
		t.Errorf("after an edit the page has its state: %v, but it is said that %s", kept, tr.hot)
	}
	var all seen
	b.do("seen", nil, &all)
	for _, u := range append(all.Requests, all.Sockets...) {
		if at := must.Get(url.Parse(u))(t); at.Host != "" && !strings.HasSuffix(origin, "//"+at.Host) && !strings.HasSuffix(host, "//"+at.Host) {
			t.Errorf("the browser asked for %s", u)
		}
	}
	if len(all.Errors) > 0 {
		t.Errorf("the browser's console has %q", all.Errors)
	}
	t.Logf("shown after %v, changed after %v", shown, time.Since(began))
}

// edit changes the page's text until the browser shows it. An edit is lost to a page that
// is not connected to its server yet.
func (tr *trial) edit(t *testing.T, b *browser, so string) {
	t.Helper()
	file := filepath.Join(tr.dir, filepath.FromSlash(tr.source))
	text := regexp.MustCompile(`\bone\b`).ReplaceAllString(string(must.Get(os.ReadFile(file))(t)), "two")
	const again = 5 * time.Second
	var last time.Time
	testkit.Eventually(t, testkit.Patience, "the edit is shown", func() (shown bool) {
		if time.Since(last) > again {
			text += "\n"
			must.Do(t, os.WriteFile(file, []byte(text), 0o644))
			last = time.Now()
			if tr.hot == nothing {
				b.do("reload", nil, nil)
			}
		}
		b.do("is", args{"js": so}, &shown)
		return shown
	})
}
