package term_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit/must"
)

// working is a program that asks nothing, and its output when it is at work.
type working struct {
	name, needs, line, ready string
}

// workingPrograms do so in a directory with a project.
var workingPrograms = []working{
	{"vite", "watchers/vite", "exec vite --port 0", `ready in`},
	{"vite below npm", "watchers/vite", "exec npm run dev", `ready in`},
	{"vite build --watch", "watchers/vite", "exec vite build --watch", `built in`},
	{"vitest", "watchers/vitest", "exec vitest --watch b.test", `for file changes`},
	{"jest --watchAll", "watchers/jest", "exec jest --watchAll", `Watch Usage`},
	{"webpack --watch", "watchers/webpack", "exec webpack --watch --mode development --entry ./main.js", `compiled`},
	{"rollup --watch", "watchers/rollup", "exec rollup --watch --no-watch.clearScreen -i main.js -o out/r.js", `created`},
	{"nodemon", "watchers/nodemon", "exec nodemon -e js,mjs once.js", `waiting for changes`},
	{"tsc --watch", "watchers/typescript", "exec tsc --watch --allowJs --outDir out main.js", `Watching for file changes`},
	{"tsx watch", "watchers/tsx", "exec tsx watch once.js", `once`},
	{"concurrently", "watchers/concurrently", "exec concurrently 'node --watch once.js' 'python3 -um http.server -b 127.0.0.1 0'", `Serving`},
	{"esbuild --watch", "watchers/esbuild", "exec esbuild --watch --outfile=out/e.js main.js", `watching|build finished`},
	{"node --watch", "node", "exec node --watch once.js", `Completed running`},
	{"python's server", "python3", "exec python3 -um http.server -b 127.0.0.1 0", `Serving`},
	{"tail -f", "tail", "exec tail -f f", `one`},
	{"entr", "entr", "echo f | exec entr -p echo again & echo began; wait", `began`},
	{"entr with keys", "entr", "echo begun; echo f | entr echo built", `built`},
	{"inotifywait", "inotifywait", "exec inotifywait -m .", `established`},
	{"watch", "watch", "exec watch -n 60 echo seen", `seen`},
	{"top", "top", "exec top -d 60", `PID`},
	{"make that prints half a line", "make", "exec make slow", `compiling`},
	{"a progress bar", "python3", "exec python3 -uc 'import time; print(end=\"\\r 45% [####    ]\"); time.sleep(99)'", `45%`},
	{"git that waits for a server", "git", "exec git clone http://$STALLED/x", `Cloning`},
	{"curl that waits for a server", "curl", "exec curl -o x http://$STALLED/", `Dload`},
	{"wget that waits for a server", "wget", "exec wget http://$STALLED/x", `awaiting response`},
	{"npm that waits for a server", "npm", "echo begun; exec npm install --registry http://$STALLED/ left-pad", `begun`},
	{"ssh that waits for a server", "ssh", "echo begun; exec ssh -v -F none -o StrictHostKeyChecking=no -p ${STALLED#*:} 127.0.0.1", `Connection established`},
	{"a server that reads lines in a thread", "python3", "exec python3 -uc 'import threading,sys,time; threading.Thread(target=sys.stdin.read).start(); print(\"serving\"); time.sleep(99)'", `serving`},
	{"a shell", "bash", "PS1='$ ' exec bash --norc -i", `\$ `},
	{"a shell of the system", "dash", "PS1='$ ' exec dash -i", `\$ `},
	{"a shell that is fish", "fish", "exec fish --no-config -i", `> |# `},
	{"a shell that is zsh", "zsh", "PS1='$ ' exec zsh -fi", `\$ `},
	{"a shell on a terminal of its own", "script", "exec script -qc 'bash --norc -i' /dev/null", `\$ |# `},
}

// project is a workplace with something to build, and a server that accepts connections
// and says nothing.
func project(t *testing.T) (dir string) {
	dir = workplace(t)
	for name, text := range map[string]string{
		"package.json": `{"name":"x","private":true,"type":"commonjs","scripts":{"dev":"vite --port 0"}}`,
		"index.html":   `<script type="module" src="/main.js"></script>`,
		"main.js":      "console.log('hello')\n",
		"once.js":      "console.log('once')\n",
		"a.test.js":    "if (typeof test === 'function') test('a', () => {});\n",
		"b.test.mjs":   "import { test } from 'vitest'; test('b', () => {});\n",
		"Makefile":     "slow:\n\t@printf 'compiling a.c ... '\n\t@sleep 99\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// Builds, servers and watchers that ask nothing are never taken for some that do.
func TestProgramsThatWork(t *testing.T) {
	pool := term.NewPool(term.Options{KillGrace: time.Millisecond})
	t.Cleanup(func() { pool.Close(context.Background()) })
	stalled := stalledServer(t)
	for _, p := range workingPrograms {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if name := missing([]string{"sh", p.needs}); name != "" {
				t.Skip("not installed: " + name)
			}
			h := runs(t, pool, project(t), "export PATH='"+modules()+"/.bin':$PATH STALLED="+stalled+"; "+p.line)
			printed := until(t, h, regexp.MustCompile(p.ready))
			for began := time.Now(); time.Since(began) < 3*time.Second; { // three looks after the last output
				in, changed := h.LastInput()
				if in.Input.Awaits() {
					t.Fatalf("%+v after %q", in, printed)
				}
				if asked, _ := h.Input(); asked.Input.Awaits() {
					t.Fatalf("asked: %+v", asked)
				}
				select {
				case <-changed:
				case <-time.After(100 * time.Millisecond):
				}
			}
			in, _ := h.Input()
			t.Logf("%s %q", in.Input, printed[max(0, len(printed)-80):])
		})
	}
}

// until returns the output once it matches.
func until(t *testing.T, h term.Handle, ready *regexp.Regexp) string {
	t.Helper()
	rd := must.Get(h.Reader(output.ReaderOptions{View: output.ViewText}))(t)
	defer rd.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var text []byte
	for buf := make([]byte, 32<<10); !ready.Match(text); {
		ev, err := rd.Next(ctx, buf)
		if err != nil && !errors.Is(err, io.EOF) || ev.Mark != nil && ev.Mark.Kind == output.MarkExited || err != nil {
			t.Fatalf("%v; printed %q", err, text)
		}
		text = append(text, ev.Data...)
	}
	return string(text)
}

// stalledServer accepts connections and never answers.
func stalledServer(t *testing.T) (address string) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	return l.Addr().String()
}
