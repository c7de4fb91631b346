package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"tether/agent/redact"
	"tether/platform/proc"
)

// maxOutput bounds a recording, in bytes.
const maxOutput = 200 << 10

// recorder makes the recording of one tool.
type recorder struct {
	*tool
	root string // of the project's directory app, and the home directory of what runs there
	bin  string // of Go's programs
	env  []string

	patience time.Duration // for a state

	term  *terminal
	out   []byte // printed by former commands
	truth []string
	marks []int // offsets that "%d" of truth stands for, in order
}

// record installs the tool, runs it and writes the recording.
func (r *recorder) record(ctx context.Context) error {
	app := filepath.Join(r.root, "app")
	r.bin = filepath.Join(r.root, "bin")
	r.env = environment(r.root, app, r.bin)
	if err := r.install(ctx, app); err != nil {
		return err
	}
	version, err := r.versionOf(ctx, app)
	if err != nil {
		return err
	}
	defer func() {
		if r.term != nil {
			r.term.stop()
		}
	}()
	if err := r.play(app); err != nil {
		return err
	}
	if err := r.write(); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: recorded %s\n", r.name, version)
	return enter(r.name, version)
}

// environment is what programs get in the recorded terminal.
func environment(root, app, bin string) []string {
	env := []string{"HOME=" + root, "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/sh", "USER=dev", "LOGNAME=dev",
		"PATH=" + strings.Join([]string{filepath.Join(app, "node_modules", ".bin"), bin, "/usr/bin", os.Getenv("PATH")}, string(os.PathListSeparator)),
		"NEXT_TELEMETRY_DISABLED=1", "ASTRO_TELEMETRY_DISABLED=1", "NUXT_TELEMETRY_DISABLED=1", "STORYBOOK_DISABLE_TELEMETRY=1",
		"NG_CLI_ANALYTICS=false", "NX_DAEMON=false", "DO_NOT_TRACK=1", "NO_UPDATE_NOTIFIER=1", "npm_config_update_notifier=false"}
	home, _ := os.UserHomeDir() //nolint:errcheck // then the tools have their own defaults
	for name, dir := range map[string]string{"GOCACHE": ".cache/go-build", "GOMODCACHE": "go/pkg/mod", "RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo"} {
		value := os.Getenv(name)
		if value == "" {
			value = filepath.Join(home, filepath.FromSlash(dir))
		}
		env = append(env, name+"="+value)
	}
	return env
}

// install writes the project's files and brings the tool.
func (r *recorder) install(ctx context.Context, app string) error {
	if err := os.MkdirAll(app, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"package.json", "package-lock.json"} { // of a former call that kept them
		if err := os.Remove(filepath.Join(app, name)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	for name, text := range r.files {
		if err := writeFile(filepath.Join(app, name), text); err != nil {
			return err
		}
	}
	if len(r.apt) > 0 && command(ctx, app, nil, "dpkg", append([]string{"-s"}, r.apt...)...) != nil {
		args := append([]string{"install", "-y", "-q", "--no-install-recommends"}, r.apt...)
		if err := command(ctx, app, nil, "apt-get", args...); err != nil {
			return err
		}
	}
	if err := r.installNpm(ctx, app); err != nil {
		return err
	}
	for _, pkg := range r.gomod {
		if err := command(ctx, app, []string{"GOBIN=" + r.bin, "GOFLAGS=-trimpath"}, "go", "install", pkg); err != nil {
			return err
		}
	}
	for _, line := range r.setup {
		if err := command(ctx, app, r.env, "sh", "-c", line); err != nil {
			return err
		}
	}
	return nil
}

// installNpm brings the packages of npm. One that is called node comes first, and runs
// npm: of each package npm takes the newest version that its Node.js can run.
func (r *recorder) installNpm(ctx context.Context, app string) error {
	args := []string{"install", "--no-audit", "--no-fund", "--save-dev"}
	path := []string{"PATH=" + filepath.Join(app, "node_modules", ".bin") + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, isNode := range []bool{true, false} {
		all := slices.DeleteFunc(slices.Clone(r.npm), func(name string) bool { return strings.HasPrefix(name, "node@") != isNode })
		if len(all) == 0 {
			continue
		}
		if err := command(ctx, app, path, "npm", append(args, all...)...); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// command runs a program to its end. Its output is in the error.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

var number = regexp.MustCompile(`\d+(?:\.\d+)+[\w.+~-]*`)

// versionOf is the version of what is recorded.
func (r *recorder) versionOf(ctx context.Context, app string) (string, error) {
	if r.version == "" {
		name := r.npm[0]
		if i := strings.LastIndexByte(name, '@'); i > 0 {
			name = name[:i]
		}
		data, err := os.ReadFile(filepath.Join(app, "node_modules", filepath.FromSlash(name), "package.json"))
		if err != nil {
			return "", err
		}
		var p struct{ Version string }
		err = json.Unmarshal(data, &p)
		return name + " " + p.Version, err
	}
	name, line, _ := strings.Cut(r.version, " ")
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = app
	cmd.Env = append(os.Environ(), r.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", r.version, err, out)
	}
	return name + " " + number.FindString(string(out)), nil
}

// play starts the tool, and breaks and repairs.
func (r *recorder) play(app string) error {
	if err := r.start(app, false); err != nil {
		return err
	}
	var ready []*regexp.Regexp
	if r.ready != nil {
		ready = append(ready, r.ready)
	}
	if err := r.term.await(0, r.urls, func() error { return nil }, ready...); err != nil {
		return fmt.Errorf("it does not start: %w", err)
	}
	if r.page != "" {
		closeBrowser, err := r.browse()
		if err != nil {
			return err
		}
		defer closeBrowser()
	}
	r.mark("clean %d")
	for _, round := range r.rounds {
		if err := r.playRound(app, round); err != nil {
			return err
		}
	}
	r.out = r.term.stop()
	r.term = nil
	return nil
}

// browse shows the page in a browser, and returns once it has had time to load.
func (r *recorder) browse() (stop func(), err error) {
	c := exec.Command("chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
		"--user-data-dir="+filepath.Join(r.root, "browser"), r.page)
	tag := proc.Tag(fmt.Sprintf("browser-%d", os.Getpid()))
	c.Env = append(os.Environ(), tag)
	proc.InSession(c)
	if err := c.Start(); err != nil {
		return nil, err
	}
	leader, err := proc.Lookup(c.Process.Pid)
	if err != nil {
		return nil, err
	}
	time.Sleep(maxPause)
	r.term.settle()
	return func() {
		(proc.Tree{Leader: leader.ID, Tag: tag}).Kill(context.Background(), 0) //nolint:errcheck // what is left is the person's to see
		c.Wait()                                                               //nolint:errcheck // it was killed
	}, nil
}

// start runs the command in a terminal; of a command that ends by itself, to its end.
func (r *recorder) start(app string, again bool) (err error) {
	if again {
		r.out = r.term.stop()
		r.mark("run %d")
	}
	if r.term, err = start(r.run, app, r.env, r.out, r.patience); err != nil {
		return err
	}
	if r.once {
		return r.term.ended()
	}
	return nil
}

// mark adds a line of truth about the present end of the output.
func (r *recorder) mark(line string) {
	if r.term != nil {
		r.out, _, _ = r.term.printed(0)
	}
	r.truth, r.marks = append(r.truth, line), append(r.marks, len(r.out))
}

// playRound breaks and repairs.
func (r *recorder) playRound(app string, round round) error {
	var all, fixed []*regexp.Regexp
	for _, f := range round.errors {
		all = append(all, f.message)
	}
	if round.fixed != nil {
		fixed = append(fixed, round.fixed)
	}
	good, bad, err := contents(app, round.edits)
	if err != nil {
		return err
	}
	from := len(r.out)
	if err := r.save(app, bad, all); err != nil {
		return err
	}
	_, text, _ := r.term.printed(from)
	for _, f := range round.errors {
		groups := f.message.FindStringSubmatch(text)
		where, err := shown(f.where, text)
		if err != nil {
			return err
		}
		r.truth = append(r.truth, strings.TrimSpace(where+" "+groups[len(groups)-1]))
	}
	r.mark("broken %d")
	from = len(r.out)
	if err := r.save(app, good, fixed); err != nil {
		return fmt.Errorf("after a repair: %w", err)
	}
	if out, _, _ := r.term.printed(0); round.silent || !r.once && len(out) == from {
		r.mark("silent %d")
		return nil
	}
	r.mark("repaired %d")
	return nil
}

// contents returns the texts of the edited files, before and after.
func contents(app string, edits []edit) (before, after map[string]string, err error) {
	before, after = map[string]string{}, map[string]string{}
	for _, e := range edits {
		if _, ok := before[e.file]; !ok {
			data, err := os.ReadFile(filepath.Join(app, e.file))
			if err != nil {
				return nil, nil, err
			}
			before[e.file], after[e.file] = string(data), string(data)
		}
		if !strings.Contains(after[e.file], e.from) {
			return nil, nil, fmt.Errorf("%s does not have %q", e.file, e.from)
		}
		after[e.file] = strings.Replace(after[e.file], e.from, e.to, 1)
	}
	return before, after, nil
}

// save writes files, as an editor does that writes in place, and waits for what the tool
// prints about it. It saves them again where the tool does nothing: a watcher that starts
// may have missed it.
func (r *recorder) save(app string, files map[string]string, all []*regexp.Regexp) error {
	from := len(r.out)
	write := func() (err error) {
		for name, text := range files {
			err = firstOf(err, writeFile(filepath.Join(app, name), text))
		}
		return err
	}
	if err := write(); err != nil {
		return err
	}
	if r.once {
		if err := r.start(app, true); err != nil {
			return err
		}
	}
	return r.term.await(from, r.urls, write, all...)
}

// shown checks that a file's name, a line and a column are in a text. A column that is
// printed behind file and line is added.
func shown(where, text string) (string, error) {
	parts := strings.Split(where, ":")
	for i, part := range parts {
		if i == 0 {
			part = filepath.Base(part)
		}
		if part != "0" && !strings.Contains(text, part) {
			return "", fmt.Errorf("%s is not printed:\n%s", where, tail(text))
		}
	}
	if len(parts) == 2 && parts[1] != "0" {
		behind := regexp.MustCompile(regexp.QuoteMeta(filepath.Base(parts[0])) + `(?::| ?\()` + parts[1] + `[:,](\d+)`)
		if m := behind.FindStringSubmatch(text); m != nil {
			where += ":" + m[1]
		}
	}
	return where, nil
}

// write makes the output neutral, piece by piece between the marks, and writes the
// recording.
func (r *recorder) write() error {
	rules, err := redact.Compile(redact.Options{Tokens: true})
	if err != nil {
		return err
	}
	pairs, out, at := neutral(r.root), []byte(nil), 0
	marks := make([]any, len(r.marks))
	for i, mark := range r.marks {
		out = append(out, masked(rules, pairs, r.out[at:mark])...)
		marks[i], at = len(out), mark
	}
	if len(out) > maxOutput {
		return fmt.Errorf("the recording has %d bytes, at most %d", len(out), maxOutput)
	}
	want := []string{home + "/app $ " + r.run}
	for _, line := range r.truth {
		if strings.HasSuffix(line, " %d") {
			line, marks = fmt.Sprintf(line, marks[0]), marks[1:]
		}
		want = append(want, string(masked(rules, pairs, []byte(line))))
	}
	base := filepath.Join(outDir, r.name)
	if err := writeFile(base+".want", strings.Join(want, "\n")+"\n"); err != nil {
		return err
	}
	return os.WriteFile(base+".out", out, 0o644)
}
