package problems_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/problems"
)

// reported are the problems of a text, as "PACKAGE FILE:LINE MESSAGE".
func reported(text string) string {
	tr := problems.NewTracker(problems.Builtin(), 0)
	tr.Begin("x", "/p")
	tr.Write(0, []byte(strings.ReplaceAll(text, "\n", "\r\n")))
	tr.End()
	var all []string
	for _, p := range tr.Problems(0) {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s:%d %s", p.Package, p.File, p.Line, p.Message)))
	}
	return strings.Join(all, "\n")
}

// Runners of several programs put a name before each line. It is the problem's package,
// programs' lines may be mixed, and a round of one program clears its own problems alone.
func TestPrefixedLines(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"docker compose", "web-1  | src/a.ts(1,7): error TS2322: bad\napi-1  | Traceback (most recent call last):\nweb-1  | more\napi-1  |   File \"/srv/app.py\", line 6, in index\napi-1  | ZeroDivisionError: division by zero\n",
			"web-1 /p/src/a.ts:1 bad\napi-1 /srv/app.py:6 ZeroDivisionError: division by zero"},
		{"turbo", "web:build: cache miss\nweb:build: \nweb:build: src/a.ts(1,7): error TS2322: bad\n", "web:build /p/src/a.ts:1 bad"},
		{"turbo, scoped", "@acme/web:build: cache miss\n@acme/web:build: \n@acme/web:build: src/a.ts(1,7): error TS2322: bad\n", "@acme/web:build /p/src/a.ts:1 bad"},
		{"pnpm -r", "packages/web build: > tsc\npackages/web build: \npackages/web build: src/a.ts(1,7): error TS2322: bad\n", "packages/web build /p/packages/web/src/a.ts:1 bad"},
		{"concurrently", "[web] > tsc\n[web] starting\n[web] src/a.ts(1,7): error TS2322: bad\n", "web /p/src/a.ts:1 bad"},
		{"pnpm -r at a terminal", "packages/web build$ tsc\n└─ Running...\n\x1b[1A│ src/a.ts(1,7): error TS2322: bad\n└─ Failed in 1s at /p/packages/web\n", "packages/web build /p/packages/web/src/a.ts:1 bad"},
		{"pnpm -r at a terminal, above another", "packages/web build$ tsc\n└─ Running...\npackages/api build$ node\n└─ Running...\n\x1b[2B\r\x1b[5A│ src/a.ts(1,7): error TS2322: bad\n└─ Running...\npackages/api build$ node\n└─ Running...\n", "packages/web build /p/packages/web/src/a.ts:1 bad"},
		{"many programs", strings.Repeat("a:dev: x\nb:dev: x\nc:dev: x\nd:dev: x\ne:dev: x\nf:dev: x\n", 3) + "b:dev: src/a.ts(1,7): error TS2322: bad\n", "b:dev /p/src/a.ts:1 bad"},
		{"nx", "   ✖  web:build\n      > tsc\n\n      src/a.ts(1,7): error TS2322: bad\n\nRan target build\n      src/b.ts(1,7): error TS2322: no block\n", "web:build /p/src/a.ts:1 bad"},
		{"esbuild's rounds are no name", "[watch] build started (x)\n[watch] build finished\n[watch] build started (x)\n✘ [ERROR] bad\n\n    a.ts:1:2:\n[watch] build started (x)\n", ""},
		{"foreman", "12:00:01 web.1 | src/a.ts(1,7): error TS2322: bad\n", "web.1 /p/src/a.ts:1 bad"},
		{"coloured", "\x1b[36mweb:dev: \x1b[0mone\n\x1b[36mweb:dev: \x1b[0mtwo\n\x1b[36mweb:dev: \x1b[0msrc/a.ts(1,7): error TS2322: bad\n", "web:dev /p/src/a.ts:1 bad"},
		{"a round of one", "web-1  | src/a.ts(1,7): error TS2322: bad\napi-1  | src/b.ts(1,7): error TS2322: bad\napi-1  | [nodemon] restarting due to changes...\n", "web-1 /p/src/a.ts:1 bad"},
		{"the runner's own restart", "web-1  | src/a.ts(1,7): error TS2322: bad\n[nodemon] restarting due to changes...\n", ""},
		{"no names", "a.c:1:2: error: one\na.c:2:2: error: two\na.c:3:2: error: three\na.c:4:2: error: four\n", "/p/a.c:1 one\n/p/a.c:2 two\n/p/a.c:3 three\n/p/a.c:4 four"},
		{"frames of Rust", "error[E0308]: mismatched types\n --> src/main.rs:2:5\n  |\n2 |     1\n  |     ^ expected\n", "/p/src/main.rs:2 mismatched types"},
	} {
		if got := reported(c.text); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.want)
		}
	}
}

// Names count from a command's beginning: many other lines of the commands before it do
// not hide them.
func TestPrefixedLinesOfTheNextCommand(t *testing.T) {
	tr := problems.NewTracker(problems.Builtin(), 0)
	at := int64(0)
	for range 5 {
		tr.Begin("turbo run build", "/p")
		for line := range strings.Lines("web: cached\nweb: \n" + strings.Repeat("a line of the runner\n", 20) + "web: one\nweb: two\n") {
			tr.Write(at, []byte(line))
			at += int64(len(line))
		}
	}
	tr.Begin("turbo run build", "/p")
	tr.Write(at, []byte(strings.Repeat("a line of the runner\n", 20)+"web: \nweb: tsc\nweb: src/a.ts(1,7): error TS2322: bad\n"))
	if got := tr.Problems(0); len(got) != 1 || got[0].Package != "web" {
		t.Errorf("%+v", got)
	}
}

// Forms of tools that testdata has no recording of.
func TestFormats(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"mocha", "  sums\n    1) adds\n\n  0 passing (4ms)\n  1 failing\n\n  1) sums\n       adds:\n\n      AssertionError [ERR_ASSERTION]: -1 == 3\n      + expected - actual\n\n      --1\n      +3\n      \n      at Context.<anonymous> (test/a.test.js:5:10)\n      at process.processImmediate (node:internal/timers:504:21)\n",
			"/p/test/a.test.js:5 sums: AssertionError [ERR_ASSERTION]: -1 == 3"},
		{"node:test", "✖ failing tests:\n\ntest at a.test.mjs:3:1\n✖ adds (0.8ms)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  \n  -1 !== 3\n", "/p/a.test.mjs:3 adds: AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:"},
		{"rollup", "src/main.js → dist...\n[!] RollupError: src/main.js (2:8): Expression expected (Note that you need plugins)\nsrc/main.js (2:8)\n\n1: \n2: let a = = 3;\n", "/p/src/main.js:2 Expression expected (Note that you need plugins)"},
		{"storybook", "🚨 Unable to index files:\n- ./src/Button.stories.ts: Unexpected token (5:12)\n", "/p/src/Button.stories.ts:5 Unexpected token"},
		{"svelte-check", "Loading svelte-check in workspace: /p\nGetting Svelte diagnostics...\n\n/p/src/routes/+page.svelte:2:7\nError: Type 'string' is not assignable to type 'number'. (ts)\n", "/p/src/routes/+page.svelte:2 Type 'string' is not assignable to type 'number'."},
		{"vitest's projects", " FAIL   unit  src/a.test.ts > sums > adds\nAssertionError: expected -1 to be 3\n\n ❯ src/a.test.ts:4:42\n", "/p/src/a.test.ts:4 sums > adds: AssertionError: expected -1 to be 3"},
		{"an import in vitest", " FAIL  src/a.test.ts [ src/a.test.ts ]\nError: Failed to resolve import \"./nope\" from \"src/a.ts\". Does the file exist?\n  Plugin: vite:import-analysis\n  File: /p/src/a.ts:2:14\n", "/p/src/a.ts:2 Failed to resolve import \"./nope\""},
		{"Angular", "✘ [ERROR] NG8001: 'app-x' is not a known element [plugin angular-compiler]\n\n    src/app/app.html:3:0:\n      3 │ <app-x/>\n", "/p/src/app/app.html:3 'app-x' is not a known element"},
		{"Angular, again", "✘ [ERROR] TS2322: bad [plugin angular-compiler]\n\n    src/app/app.ts:3:0:\n❯ Changes detected. Rebuilding...\n", ""},
		{"bun --watch", "error: bad\n    at /p/a.ts:3:6\n\x1b[2J\x1b[3J\x1b[Hlistening\n", ""},
		{"bun --watch, still bad", "error: bad\n    at /p/a.ts:3:6\n\x1b[2J\x1b[3J\x1b[Herror: bad\n    at /p/a.ts:4:6\n", "/p/a.ts:4 bad"},
		{"one of several programs erases the screen", "api: one\napi: two\napi: src/a.ts(1,7): error TS2322: bad\nweb: \x1b[2J\x1b[3J\x1b[H\n", "api /p/src/a.ts:1 bad"},
		{"the screen alone is erased", "error: bad\n    at /p/a.ts:3:6\n\x1b[H\x1b[2J\n", "/p/a.ts:3 bad"},
		{"node --watch", "/p/a.js:3\nnull.x\n     ^\n\nTypeError: no\n    at Object.<anonymous> (/p/a.js:3:6)\nRestarting 'a.js'\n", ""},
		{"cargo watch", "error[E0308]: mismatched types\n --> src/main.rs:2:5\n[Running 'cargo check']\n", ""},
		{"go test, another package is ok", "--- FAIL: TestA (0.00s)\n    a_test.go:7: bad\nFAIL\nFAIL\tx/a\t0.1s\nok  \tx/b\t0.1s\n", "a_test.go:7 TestA: bad"},
		{"esbuild, at the end of a round", "✘ [ERROR] bad\n\n    a.ts:1:2:\n1 error\n[watch] build finished\n", "/p/a.ts:1 bad"},
		{"playwright, some passed", "  1) a.spec.js:4:3 › is wrong ───\n\n    Error: bad\n\n        at /p/a.spec.js:5:19\n\n  1 failed\n  1 passed (1.2s)\n", "/p/a.spec.js:5 is wrong: Error: bad"},
		{"next, its own error page", "⨯ ./app/page.tsx:4:29\nError: bad\n○ Compiling /_error ...\n✓ Compiled /_error in 1s\n GET / 500 in 13s\n", "/p/app/page.tsx:4 bad"},
		{"next, again", "⨯ ./app/page.tsx:4:29\nError: bad\n✓ Compiled in 30ms\n", ""},
		{"a spinner before a file", "⠙\x1b[1G\x1b[0K/p/a.c:1:2: error: bad\n⠹\x1b[1G\x1b[0K\n", "/p/a.c:1 bad"},
		{"a spinner over a whole line", "⠙ working\x1b[2K\x1b[1Ga.c:1:2: error: bad\n", "/p/a.c:1 bad"},
		{"written over", "xxxx\x1b[4Da.c:1:2: error: bad\n", "/p/a.c:1 bad"},
	} {
		if got := reported(c.text); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, got, c.want)
		}
	}
}
