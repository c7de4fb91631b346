package problems_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tether/problems"
)

const frontend = "1:00:25 AM [vite] (client) "

// Errors of the browser that dev servers print are problems: of each form, with its
// place where the tool tells a true one.
func TestBrowserErrors(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // FILE:LINE:COLUMN SEVERITY MESSAGE
	}{
		{"vite", frontend + "[Unhandled error] TypeError: no width\n > area src/shape.ts:4:18\n    4  |    return s.width\n > src/main.ts:17:20\n\n",
			[]string{"/p/src/shape.ts:4:18 error TypeError: no width"}},
		{"vite, in colours", "\x1b[2m12:57:54 AM\x1b[22m \x1b[31m\x1b[1m[vite]\x1b[22m\x1b[39m \x1b[31m\x1b[2m(client)\x1b[22m\x1b[39m \x1b[31m[Unhandled error] \x1b[1mError\x1b[22m: late\r\nwith more: lines\r\n\r\n" +
			"\x1b[39m > src/main.ts:16:25\r\n", []string{"/p/src/main.ts:16:25 error Error: late"}},
		{"vite, a library's frames", frontend + "[Unhandled rejection] RangeError: bad\n > run node_modules/.vite/deps/react.js:1:2\n > go src/a.tsx:3:4\n",
			[]string{"/p/src/a.tsx:3:4 error RangeError: bad"}},
		{"vite, not an error", frontend + "[Unhandled rejection] Unknown Error: just text\n\n", []string{":0:0 error just text"}},
		{"vite, the console", frontend + "[console.error] drawing failed Error: inner\n    at http://localhost:5971/src/main.ts:8:34\n" + frontend + "[console.warn] slow { a: 1 } (x2)\n",
			[]string{":0:0 error drawing failed Error: inner", ":0:0 warning slow { a: 1 }"}},
		{"vite, other messages", frontend + "[console.info] a\n" + frontend + "[console.log] Error: b\n" + frontend + "hmr update /src/a.ts\n", nil},
		{"astro", "01:00:39 [ERROR] [vite] [Unhandled error] TypeError: astro 2\n > inner ../../../../src/pages/index.astro?astro=&type=script&index=0&lang.ts=:2:8\n",
			[]string{"/p/src/pages/index.astro:0:0 error TypeError: astro 2"}},
		{"nuxt", " ERROR  [Unhandled error] TypeError: nuxt 3                                                                 1:01:11 AM\n\n > ../../../../../_nuxt/app.vue:11:11\n",
			[]string{":0:0 error TypeError: nuxt 3"}},
		{"angular", frontend + "[Unhandled error] TypeError: ng three\n > main.js:35390:13\n", []string{":0:0 error TypeError: ng three"}},
		{"storybook", "■  Vite [Unhandled error] TypeError: sb one\n│  > src/Button.jsx:4:29\n", []string{"/p/src/Button.jsx:4:29 error TypeError: sb one"}},
		{"next", "[browser] Uncaught TypeError: no value\n    at area (app/shape.js:2:18)\n    at Page.useEffect (app/page.jsx:15:39)\n",
			[]string{"/p/app/shape.js:2:18 error TypeError: no value"}},
		{"next, lines and a library", "[browser] ⨯ unhandledRejection: RangeError: no such\nshape\n    at run (node_modules/a/b.js:1:2)\n    at Page.useEffect (app/page.jsx:8:22)\n",
			[]string{"/p/app/page.jsx:8:22 error RangeError: no such"}},
		{"next, not an error", "[browser] \"⨯ unhandledRejection:\" just text \n", []string{":0:0 error just text"}},
		{"next, the console", "[browser] multi\nline \n    at Page.useEffect (app/page.jsx:12:15)\n  10 | x\n  15 | y (app/page.jsx:12:15)\n", []string{"/p/app/page.jsx:12:15 error multi"}},
		{"next, other messages", "[browser] Hello World (app/page.tsx:8:17)\n[browser] slow { a: 1 } (app/page.jsx:11:15)\n[browser] two\nlines\n GET / 200 in 5ms\n", nil},
		{"next, a build's error again", "[browser] Uncaught Error: ./app/layout.jsx\nError: odd\nIt was converted.\n", nil},
		{"rsbuild", "error   [browser] Uncaught TypeError: twice 4 at inner (src/index.ts:5:0)\nerror   [browser] Uncaught (in promise) RangeError: rejected (src/index.ts:3:0)\n",
			[]string{"/p/src/index.ts:5:0 error TypeError: twice 4", "/p/src/index.ts:3:0 error RangeError: rejected"}},
		{"bun", "frontend TypeError: thrown 3\n      at inner (http://localhost:5973/_bun/client/index-000000000eac259d.js:34:13)\n    from browser tab http://localhost:5973/\n",
			[]string{":0:0 error TypeError: thrown 3"}},
	} {
		if got := browserErrors(t, c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// browserErrors are the problems in an output, all of which must be the browser's.
func browserErrors(t *testing.T, text string) (all []string) {
	t.Helper()
	tr := problems.NewTracker(problems.Builtin(), 0)
	tr.Begin("npm run dev", "/p")
	tr.Write(0, []byte(text))
	for _, p := range tr.Problems(0) {
		if p.Tool != "browser" {
			t.Errorf("%q is a problem of %s", p.Message, p.Tool)
		}
		all = append(all, fmt.Sprintf("%s:%d:%d %s %s", p.File, p.Line, p.Column, p.Severity, p.Message))
	}
	return all
}

// The same error counts; a round of the dev server clears. Next.js may print an error
// of a round before the round's own line: it stays until the next one.
func TestBrowserRounds(t *testing.T) {
	const vite = frontend + "[Unhandled error] Error: a\n > src/a.ts:1:2\n\n"
	const next = "[browser] Uncaught Error: a\n    at A (app/a.tsx:1:2)\n"
	for _, c := range []struct {
		name, text string
		count      int // of the problem; 0 if it is gone
	}{
		{"vite, again", vite + "\x1b[1;1H\x1b[0J" + vite, 2},
		{"vite, a reload", vite + frontend + "page reload src/a.ts\n", 0},
		{"vite, an update", vite + frontend + "hmr update /src/x.css, /src/a.tsx\n", 0},
		{"vite, a style", vite + frontend + "hmr update /src/x.css\n", 1},
		{"vite, still there", vite + frontend + "page reload src/a.ts\n" + vite, 1},
		{"next, many", strings.Repeat(next, 5), 5},
		{"next, repaired", next + "✓ Compiled in 20ms\n", 0},
		{"next, before its line", "✓ Compiled in 20ms\n" + next + "✓ Compiled in 1ms\n", 1},
		{"next, repaired later", "✓ Compiled in 20ms\n" + next + "✓ Compiled in 1ms\n✓ Compiled in 9ms\n", 0},
		{"next, asked by others", next + " GET / 200 in 20ms\n", 1},
		{"rsbuild", "error   [browser] Uncaught Error: a at b (src/a.ts:1:0)\nstart   building src/a.ts\n", 0},
	} {
		tr := problems.NewTracker(problems.Builtin(), 0)
		tr.Begin("npm run dev", "/p")
		tr.Write(0, []byte(c.text))
		got := tr.Problems(0)
		if n := len(got); n != min(c.count, 1) || n == 1 && got[0].Count != c.count {
			t.Errorf("%s: %+v, want count %d", c.name, got, c.count)
		}
	}
}
