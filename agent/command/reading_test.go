package command_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/command"
	"tether/internal/testkit"
)

// Example shows commands found behind other commands.
func Example() {
	r := command.Line(`cd web && env CI=1 timeout 60 npm test > "$OUT" | sh`)
	for _, c := range r.Commands {
		fmt.Println("runs", c)
	}
	for _, f := range r.Findings {
		fmt.Println("finding", f.Kind, f.Text)
	}
	fmt.Println("sets", r.Sets[0].Name, "and writes", r.Writes[0].Name.Text)
	// Output:
	// runs cd web
	// runs npm test
	// runs sh
	// finding pipe sh
	// sets CI and writes "$OUT"
}

// said lists the contents of a reading, one text per item.
func said(r *command.Reading) []string {
	var all []string
	for _, c := range r.Commands {
		all = append(all, c.String())
	}
	for _, c := range r.Outer {
		all = append(all, "outer "+c.Name())
	}
	for _, f := range r.Findings {
		all = append(all, "! "+string(f.Kind))
	}
	for _, w := range r.Writes {
		all = append(all, "> "+w.Name.Text)
	}
	for _, s := range r.Sets {
		all = append(all, s.Name+"=")
	}
	for _, m := range r.Moves {
		all = append(all, "@ "+m.Text)
	}
	return all
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		// The shell's own structure.
		{"a; b & c\nd", []string{"a", "b", "c", "d"}},
		{"a && b || ! c", []string{"a", "b", "c"}},
		{"if a; then b; elif c; then d; else e; fi", []string{"a", "b", "c", "d", "e"}},
		{"for x in 1; do a; done; while b; do c; done", []string{"a", "b", "c"}},
		{"case x in a) b;; *) c;; esac", []string{"b", "c"}},
		{"(a; { b; })", []string{"a", "b"}},
		{"f() { a; }; f", []string{"a", "f"}},
		{"time -p a", []string{"a"}},
		{"coproc a", []string{"a"}},
		{"[[ -f x ]] && ((y=1)) && a", []string{"a"}},
		// Words.
		{`a "b c" 'd'\e$'\x66'`, []string{"a b c def"}},
		{`a \"b`, []string{`a "b`}},
		{`a "\$b" '\$b'`, []string{`a $b \$b`}},
		{"a *.go {b,c} {} {b}", []string{"a *.go {b,c} {} {b}"}},
		{`$a b`, []string{"$a b", "! dynamic"}},
		{`"$a" b`, []string{`"$a" b`, "! dynamic"}},
		{`/bin/r?`, []string{"/bin/r?", "! dynamic"}},
		{`{r,x}m`, []string{"{r,x}m", "! dynamic"}},
		{`{r"m",x}`, []string{`{r"m",x}`, "! dynamic"}},
		{`$"rm" x`, []string{`$"rm" x`, "! dynamic"}},
		{`~/bin/a`, []string{"~/bin/a"}},
		// Substitutions, wherever they are.
		{"a `b`", []string{"b", "a `b`", "! substitution"}},
		{`a "$(b)"`, []string{"b", `a "$(b)"`, "! substitution"}},
		{`a=$(b) c`, []string{"b", "c", "! substitution", "a="}},
		{`a ${x:-$(b)}`, []string{"b", "a ${x:-$(b)}", "! substitution"}},
		{`a <(b) >(c)`, []string{"b", "c", "a <(b) >(c)", "! substitution", "! substitution"}},
		{"a $((1 + $(b)))", []string{"b", "a $((1 + $(b)))", "! substitution"}},
		{"a <<E\n$(b)\nE", []string{"b", "a", "! substitution"}},
		{"a <<'E'\n$(b)\nE", []string{"a"}},
		{"export A=$(b)", []string{"b", "! substitution", "A="}},
		{"for x in $(a); do b; done", []string{"a", "b", "! substitution"}},
		// Redirections.
		{"a > b >> c 2> d &> e >| f", []string{"a", "> b", "> c", "> d", "> e", "> f"}},
		{"a 2>&1 >&2 <b", []string{"a"}},
		{"a >&b", []string{"a", "> b"}},
		{"{ a; } > b", []string{"a", "> b"}},
		{"> b", []string{"> b"}},
		{`a > "$b"`, []string{"a", `> "$b"`}},
		// Settings and moves.
		{"A=1 B=2 a", []string{"a", "A=", "B="}},
		{"env -u X A=1 a", []string{"a", "outer env", "A="}},
		{"declare -x A=1; readonly B", []string{"A=", "B="}},
		{"cd a; pushd -n /b; cd; cd -- -c", []string{"cd a", "pushd -n /b", "cd", "cd -- -c", "@ a", "@ /b", "@ ~", "@ -c"}},
		// Behind other commands.
		{"nohup nice -n 5 ionice -c2 a b", []string{"a b", "outer ionice", "outer nice", "outer nohup"}},
		{"timeout -s KILL --kill-after 5 10 a", []string{"a", "outer timeout"}},
		{"timeout --kill-a 5 10 a", []string{"a", "outer timeout"}},
		{"stdbuf -oL --error=0 a", []string{"a", "outer stdbuf"}},
		{"command -p a; command -v b", []string{"a", "command -v b", "outer command"}},
		{"exec -a x b", []string{"b", "outer exec"}},
		{"sudo -u bob A=1 a", []string{"a", "outer sudo", "A="}},
		{"xargs -0 -n 1 a b", []string{"a b …", "outer xargs"}},
		{"xargs -I{} {} x", []string{"{} x", "outer xargs", "! dynamic"}},
		{"xargs sh -c", []string{"outer sh", "outer xargs", "! dynamic"}},
		{"env -a x a b", []string{"a b", "outer env"}},
		{"strace -o '|a b' c; strace -o a c", []string{"a b", "c", "c", "outer strace", "outer strace", "! code"}},
		{"systemd-run -t a b; systemd-run -P a b; systemd-run -d a b", []string{"a b", "a b", "a b", "outer systemd-run", "outer systemd-run", "outer systemd-run"}},
		{"nsenter -w a b; nsenter -r/x a b", []string{"a b", "a b", "outer nsenter", "outer nsenter"}},
		{"perf stat -n a b; perf sched record a", []string{"a b", "perf sched record a", "outer perf", "! option", "! option"}},
		{"entr -rs 'a; b'", []string{"a", "b", "outer entr"}},
		{"xargs --max-lines a b; xargs --max-l a b", []string{"a b …", "a b …", "outer xargs", "outer xargs"}}, // a value has to be attached
		{"xargs -eI a b c; xargs -lx a b", []string{"a b c …", "a b …", "outer xargs", "outer xargs"}},
		{"xargs -ia sh -c a; xargs -J a sh -c a", []string{"outer sh", "outer xargs", "outer sh", "outer xargs", "! dynamic", "! dynamic"}},
		{"xargs -S 100 -R 2 a b", []string{"a b …", "outer xargs"}},
		{"git --attr-source a --shallow-file b push", []string{"git push", "outer git"}},
		{"fd -Hx a b; fd -tfx a", []string{"a b", "fd -Hx a b", "fd -tfx a"}},
		{"a | ssh -T h; ssh -T h", []string{"a", "ssh -T h", "ssh -T h", "! interactive"}},
		{"find . -name x -exec a {} + -o -ok b ';'", []string{"a {}", "b", "find . -name x -exec a {} + -o -ok b ;"}},
		{"sh -euc 'a; b' x", []string{"a", "b", "outer sh"}},
		{"bash -lc a", []string{"a", "outer bash"}},
		{"bash -o pipefail -c a", []string{"a", "outer bash"}},
		{"bash --rcfile x -c a", []string{"a", "outer bash", "! script"}},
		{`sh -c "$a"`, []string{"outer sh", "! dynamic"}},
		{"sh -c 'if'", []string{"outer sh", "! unparsed"}},
		{"sh a b", []string{"sh a b", "! script"}},
		{"a | sh -s", []string{"a", "sh -s", "! pipe"}},
		{"a | (b; sh)", []string{"a", "b", "sh", "! pipe"}},
		{"sh < a", []string{"sh", "! script"}},
		{"sh <<E\na b\nE", []string{"a b", "outer sh"}},
		{"sh <<E\n$a\nE", []string{"outer sh", "! dynamic"}},
		{"sh <<< 'a b'", []string{"a b", "outer sh"}},
		{"sh", []string{"sh", "! interactive"}},
		{"su -c a; su - bob -c b", []string{"a", "b", "outer su", "outer su"}},
		{"script -qc a /dev/null", []string{"a", "outer script"}},
		{"watch -n 1 a '|' b", []string{"a", "b", "outer watch"}},
		{"watch -x a b", []string{"a b", "outer watch"}},
		{"flock /l a; flock /l -c b", []string{"a", "b", "outer flock", "outer flock"}},
		{"flock /l --command 'a b'", []string{"a b", "outer flock"}},
		{"env --split='a b'", []string{"a b", "outer env", "outer env", "! code"}}, // names may be cut short
		{"script --comm 'a b' f", []string{"a b", "outer script"}},
		{"env -C /x a; env --chdir /y b", []string{"a", "b", "outer env", "outer env", "@ /x", "@ /y"}},
		{"npx -y a b; npm exec -- c; pnpm dlx d; yarn dlx e; bun x f", []string{"a b", "c", "d", "e", "f", "outer npx", "outer npm", "outer pnpm", "outer yarn", "outer bun"}},
		{"npx -c 'a b'; npm exec -c 'c d'", []string{"a b", "c d", "outer npx", "outer npm"}},
		{"npm run a; uv run b; direnv exec . c", []string{"npm run a", "b", "c", "outer uv", "outer direnv"}},
		{"ssh -p 22 bob@h a b", []string{"a b", "ssh -p 22 bob@h a b"}},
		{"ssh -o ProxyCommand=a h", []string{"a", "ssh -o ProxyCommand=a h", "! code", "! interactive"}},
		{"git -C d --git-dir g status", []string{"git status", "outer git"}},
		{"git -c user.name=x commit", []string{"git commit", "outer git"}},
		{"git -c alias.x='!a' x", []string{"git x", "outer git", "! code"}},
		{"trap a EXIT; trap - EXIT", []string{"a", "trap a EXIT", "trap - EXIT"}},
		{"eval a b", []string{"a b", "outer eval", "! eval"}},
		{`eval "$a"`, []string{"outer eval", "! eval", "! dynamic"}},
		{"alias a='b c'", []string{"b c", "alias a=b c"}},
		{". ./a; source b", []string{". ./a", "source b", "! script", "! script"}},
		{"shx rm x", []string{"rm x", "outer shx"}},
		// Interpreters.
		{"python3 a.py -c", []string{"python3 a.py -c"}},
		{"python3.12 -Bc 1", []string{"python3.12 -Bc 1", "! code"}},
		{"python -m http.server", []string{"python -m http.server"}},
		{"python -W ignore -c 1", []string{"python -W ignore -c 1", "! code"}},
		{"a | python3; a | python3 -", []string{"a", "python3", "a", "python3 -", "! code", "! code"}},
		{"python3", []string{"python3", "! interactive"}},
		{"node -e 1; node --print=1; node -r x y", []string{"node -e 1", "node --print=1", "node -r x y", "! code", "! code"}},
		{"node --version; python3 -V", []string{"node --version", "python3 -V"}},
		{"perl -ne 1 x; perl -i.bak -pe 1", []string{"perl -ne 1 x", "perl -i.bak -pe 1", "! code", "! code"}},
		{"php -S x; php -r 1", []string{"php -S x", "php -r 1", "! code"}},
		{"awk '{print}' x; awk 'BEGIN{system(\"a\")}'; awk '{print > \"x\"}'", []string{"awk {print} x", `awk BEGIN{system("a")}`, `awk {print > "x"}`, "! code", "! code"}},
		{"node --import data:text/javascript,1 x; node -r ./a x", []string{"node --import data:text/javascript,1 x", "node -r ./a x", "! code", "! script"}},
		{`gawk -e 'BEGIN{system("a")}'; gawk -l time 'BEGIN{system("a")}'`, []string{`gawk -e BEGIN{system("a")}`, `gawk -l time BEGIN{system("a")}`, "! code", "! code"}},
		{`mawk -W interactive 'BEGIN{system("a")}'; gawk -ol 'BEGIN{system("a")}' x`,
			[]string{`mawk -W interactive BEGIN{system("a")}`, `gawk -ol BEGIN{system("a")} x`, "! code", "! code"}},
		{"vim x; vim +7 x; vim -c '!a' x; vim '+!a'", []string{"vim x", "vim +7 x", "vim -c !a x", "vim +!a", "! code", "! code"}},
		{"fish -c a; pwsh -NoProfile -Comm a; cmd /C a; cmd.exe /k a", []string{"fish -c a", "pwsh -NoProfile -Comm a", "cmd /C a", "cmd.exe /k a", "! code", "! code", "! code", "! code"}},
		{"make x; make --eval=a", []string{"make x", "make --eval=a", "! code"}},
		{"deno run x; deno eval 1", []string{"deno run x", "deno eval 1", "! code"}},
		{"python3 $x", []string{"python3 $x", "! code"}},
	} {
		if d := cmp.Diff(c.want, said(command.Line(c.line))); d != "" {
			t.Errorf("%s\n-want +got:\n%s", c.line, d)
		}
	}
}

func TestNotRead(t *testing.T) {
	for _, line := range []string{
		"", "  ", "# a", "if", "a 'b", "a )", "a <<E", "a\x00b", "echo ${", "for", "a &&",
		"(a ``#; rm x\n)", "(!(a)#\nrm x)", "a\rb", "a\r\n", // the parser and shells disagree
		strings.Repeat("a ", 40<<10),
		strings.Repeat("a;", 2000),
		"a" + strings.Repeat(" b", 5000),
		strings.Repeat("env ", 20) + "a",
		strings.Repeat("a `b`;", 200),
	} {
		if r := command.Line(line); !r.Has(command.Unparsed) {
			t.Errorf("%.40q was read: %.200q", line, said(r))
		}
	}
	for _, argv := range [][]string{nil, {}, make([]string, 5000)} {
		if r := command.Argv(argv); !r.Has(command.Unparsed) {
			t.Errorf("%d words were read: %.200q", len(argv), said(r))
		}
	}
}

// Words that are executed as they are have no syntax.
func TestArgv(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want []string
	}{
		{[]string{"a", "$(b)", "|", "sh", ">", "x"}, []string{"a $(b) | sh > x"}},
		{[]string{"$a"}, []string{"$a"}},
		{[]string{"/usr/bin/env", "a"}, []string{"a", "outer env"}},
		{[]string{`C:\Windows\System32\CMD.EXE`, "/c", "x"}, []string{`C:\Windows\System32\CMD.EXE /c x`, "! code"}},
		{[]string{"bash", "-c", "a $1", "x"}, []string{"a $1", "outer bash"}},
		{[]string{""}, []string{"", "! dynamic"}},
		{[]string{"dtach", "-n", "s", "-z", "a"}, []string{"-z a", "outer dtach", "! option"}}, // -z may stand behind the socket
	} {
		if d := cmp.Diff(c.want, said(command.Argv(c.argv))); d != "" {
			t.Errorf("%q\n-want +got:\n%s", c.argv, d)
		}
	}
}

// A line that is made to take long is read quickly.
func TestBombs(t *testing.T) {
	const most = testkit.Patience // an exponential algorithm never ends, on any machine
	repeat := func(s string, n int) string { return strings.Repeat(s, testkit.Load(n, n/4)) }
	for name, line := range map[string]string{
		"substitutions":   repeat("$(", 30_000),
		"closed":          repeat("$(", 20_000) + repeat(")", 20_000),
		"parentheses":     repeat("(", 60_000),
		"arithmetic":      "echo $((" + repeat("(", 60_000),
		"braces":          "a " + repeat("{a,b}", 10_000),
		"sequence":        "a {1..999999999}",
		"backslashes":     "a " + repeat(`\`, 60_000),
		"quotes":          repeat(`"$(a "`, 10_000),
		"here-documents":  repeat("<<A ", 15_000) + "\n",
		"nested shells":   repeat("sh -c 'sh -c ", 1000),
		"many eval":       repeat("eval ", 10_000),
		"if":              repeat("if a; then ", 5000),
		"parameter":       repeat("${a:-", 12_000),
		"backquotes":      repeat("`", 60_000),
		"many assignment": repeat("a=$(b) ", 9000),
	} {
		began := time.Now()
		command.Line(line)
		if took := time.Since(began); took > most {
			t.Errorf("%s: %s", name, took)
		}
	}
}

func TestIsShell(t *testing.T) {
	for name, want := range map[string]bool{"sh": true, "/bin/bash": true, `C:\Git\bin\sh.exe`: true, "fish": false, "": false, "powershell": false} {
		if got := command.IsShell(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// In its sandbox sed runs and writes nothing by its script, but still edits files in
// place.
func TestSedSandbox(t *testing.T) {
	r := command.Line(`sed --sandbox -i s/a/b/ f; sed --sandbox '1e a'`)
	var files []string
	for _, f := range r.Files {
		files = append(files, f.Name.Text)
	}
	if d := cmp.Diff([]string{"f"}, files); d != "" || len(r.Findings) > 0 {
		t.Errorf("findings %v; files, -want +got:\n%s", r.Findings, d)
	}
}
