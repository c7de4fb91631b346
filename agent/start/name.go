package start

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"tether/agent/command"
	"tether/agent/term"
	"tether/internal/clip"
)

// runner is a program that runs a script or a task of a project, whose own name says
// little. Its options and words are separated by blanks.
type runner struct {
	where string // options whose value is the package, or its directory
	named string // options whose value is the script
	value string // further options with a value
	skip  string // words before the script, as run
	of    string // words before the package, as workspace
	only  string // without one of these words before the script, nor an option of named, it is an ordinary program
	last  bool   // the last word is the script
	joint bool   // the package comes behind the script, or before it and a colon
}

// runners are known by their names. docs/CLI.md lists them.
var runners = sync.OnceValue(func() map[string]runner {
	all := map[string]runner{}
	for names, r := range map[string]runner{
		"npx pnpx bunx":          {value: "-p --package -c --call"},
		"npm":                    {where: "-w --workspace --prefix -C", value: "--loglevel", skip: "run run-script exec x"},
		"pnpm":                   {where: "-F --filter -C --dir", value: "--loglevel --workspace-concurrency", skip: "run run-script exec dlx"},
		"yarn":                   {where: "--cwd", skip: "run exec dlx", of: "workspace"},
		"bun":                    {where: "-F --filter --cwd", skip: "run x"},
		"deno":                   {where: "--cwd", value: "-c --config --import-map --env-file", skip: "task run serve"},
		"node":                   {named: "--run", only: "/"},
		"rushx":                  {},
		"composer":               {where: "-d --working-dir", skip: "run run-script"},
		"make gmake":             {where: "-C --directory", value: "-f --file --makefile"},
		"just":                   {where: "-d --working-directory", value: "-f --justfile --set"},
		"task go-task":           {where: "-d --dir", value: "-t --taskfile"},
		"rake":                   {value: "-f --rakefile"},
		"cargo":                  {where: "-p --package", named: "--bin --example", value: "-x --exec -w --watch -F --features --manifest-path --target --profile"},
		"go":                     {where: "-C", value: "-tags -ldflags -gcflags -mod -run -count", skip: "run tool"},
		"docker podman":          {where: "-p --project-name --project-directory", value: "-f --file --env-file --profile --scale", skip: "up run", only: "compose"},
		"docker-compose":         {where: "-p --project-name --project-directory", value: "-f --file --env-file --profile --scale", skip: "up run"},
		"python python3 py":      {named: "-m", value: "-W -X", only: "manage.py"},
		"manage.py":              {},
		"django-admin":           {},
		"flask":                  {value: "-A --app -e --env-file"},
		"tox":                    {named: "-e"},
		"nox":                    {named: "-s --session"},
		"poe invoke inv":         {where: "-C -r --root"},
		"php":                    {only: "artisan"},
		"artisan":                {},
		"rails":                  {},
		"mix":                    {skip: "do"},
		"iex":                    {only: "mix"},
		"gradle gradlew":         {where: "-p --project-dir", last: true},
		"mvn mvnw mvnd":          {where: "-pl --projects", value: "-f --file -P -s", last: true},
		"sbt lein":               {},
		"turbo":                  {where: "-F --filter", value: "--concurrency", skip: "run"},
		"nx":                     {where: "-p --project --projects", named: "-t --target --targets", skip: "run", joint: true},
		"lerna":                  {where: "--scope", skip: "run"},
		"moon":                   {skip: "run", joint: true},
		"mise":                   {where: "-C --cd", skip: "run r"},
		"dotnet":                 {where: "--project", value: "-c --configuration -f --framework"},
		"swift":                  {where: "--package-path"},
		"zig":                    {skip: "build"},
		"bundle bundler":         {skip: "exec"},
		"uv poetry pipenv pdm":   {where: "--directory --project --package", value: "--with --python -p", skip: "run"},
		"hatch rye uvx pipx":     {value: "-e --env --from --spec", skip: "run"},
		"foreman overmind":       {where: "-d --root", value: "-f --procfile -p --port"},
		"tilt skaffold devspace": {value: "-f --file --filename -p --profile"},
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = r
		}
	}
	return all
})

// carriers run another program that a project has installed: the program is the script.
var carriers = strings.Fields("npx pnpx bunx npm pnpm yarn bun bundle bundler uv uvx pipx poetry pipenv pdm hatch rye mise")

// nameOf suggests a name for the terminal of a request that a runner starts: nothing for
// other programs.
func nameOf(r *Request) term.NameParts {
	if r.Shell {
		return term.NameParts{}
	}
	read := command.Argv(r.Command)
	if r.Line != "" {
		read = command.Line(r.Line)
	}
	if slices.ContainsFunc(read.Findings, func(f command.Finding) bool { return f.Kind == command.Unparsed }) {
		return term.NameParts{}
	}
	carried := slices.ContainsFunc(read.Outer, func(c command.Command) bool { return slices.Contains(carriers, program(c)) })
	for _, c := range slices.Backward(read.Commands) {
		where, what := "", ""
		if run, ok := runners()[program(c)]; ok {
			where, what = run.read(c)
		} else if carried {
			what = program(c)
		}
		if what = part(what); what == "" {
			continue
		}
		if where = part(where); where == "" {
			where = directoryOf(r.Cwd, read.Moves)
		}
		if where == what {
			where = ""
		}
		return term.NameParts{Where: where, What: what}
	}
	return term.NameParts{}
}

// program returns the name of a command's program, without what Windows and versions add
// to it.
func program(c command.Command) string {
	name := c.Name()
	for _, ending := range []string{".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	if strings.HasPrefix(name, "python3.") {
		return "python3"
	}
	if at := strings.IndexByte(name, '@'); at > 0 { // a package's version
		return name[:at]
	}
	return name
}

// read returns the package, if the command names it, and the script: the runner's own
// name if it names none, and "" if it is no script of a project.
func (r runner) read(c command.Command) (where, what string) {
	var words []string
	fits := r.only == ""
	in := func(list, word string) bool { return slices.Contains(strings.Fields(list), word) }
	for args := c.Words[1:]; len(args) > 0; {
		word := args[0].Text
		if !args[0].Fixed {
			word = "-" // nobody knows yet what it is
		}
		args = args[1:]
		if !strings.HasPrefix(word, "-") {
			words = append(words, word)
			continue
		}
		option, value, attached := strings.Cut(word, "=")
		known := in(r.where, option) || in(r.named, option) || in(r.value, option)
		if known && !attached && len(args) > 0 {
			value, args = args[0].Text, args[1:]
		}
		switch {
		case in(r.where, option):
			where = value
		case in(r.named, option) && what == "":
			what, fits = value, true
		}
		if in(r.named, option) && r.only != "" {
			break // what follows is the script's
		}
	}
	name := program(c)
	for n, word := range words {
		switch {
		case what != "" || strings.Contains(word, "=") || strings.HasPrefix(word, "+") || strings.Trim(word, "0123456789") == "":
		case in(r.only, word):
			fits, name = true, strings.TrimSuffix(word, ".py")
		case in(r.skip, word):
			name = word
		case in(r.of, word) && n+1 < len(words):
			where = words[n+1]
			words[n+1] = "="
		case !fits:
			return "", ""
		case r.joint:
			if project, script, ok := strings.Cut(word, ":"); ok {
				return project, script
			}
			if n+1 < len(words) && where == "" {
				where = words[n+1]
			}
			return where, word
		case r.last:
			what = words[len(words)-1]
		default:
			what = word
		}
	}
	switch {
	case !fits:
		return "", ""
	case part(what) == "":
		what = name
	}
	return where, what
}

// maxPart bounds one part of a name, in bytes.
const maxPart = 40

// sources are the endings of files that runners run.
var sources = strings.Fields(".js .mjs .cjs .jsx .ts .mts .cts .tsx .py .rb .go .exs .php")

// part returns a word as a part of a name, "" if nothing of it can be one. The part has
// no directory, ending or version, begins with a letter or digit, and has - for
// everything but letters, digits, ".", "_" and "-".
func part(word string) string {
	word = strings.TrimRight(word, `/\`)
	word = word[strings.LastIndexAny(word, `/\`)+1:]
	if at := strings.IndexByte(word, '@'); at > 0 {
		word = word[:at]
	}
	if ending := path.Ext(word); slices.Contains(sources, ending) {
		word = strings.TrimSuffix(word, ending)
	}
	var b strings.Builder
	for _, r := range word {
		switch {
		case r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)), b.Len() > 0 && strings.ContainsRune("._-", r):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() > maxPart {
			break
		}
	}
	return strings.TrimRight(clip.Text(b.String(), maxPart), "._-")
}

// directoryOf returns the part of a name for a directory, in which a shell may have
// moved: "" for the home directory, whose name is the person's, and where it is not
// known.
func directoryOf(cwd string, moves []command.Word) string {
	dir := cwd
	for _, m := range moves {
		switch {
		case !m.Fixed || strings.HasPrefix(m.Text, "~") || m.Text == "-":
			return ""
		case filepath.IsAbs(m.Text):
			dir = m.Text
		default:
			dir = filepath.Join(dir, m.Text)
		}
	}
	dir = filepath.Clean(dir)
	if home, err := os.UserHomeDir(); err == nil && filepath.Clean(home) == dir {
		return ""
	}
	if dir == filepath.VolumeName(dir)+string(filepath.Separator) {
		return ""
	}
	return part(filepath.Base(dir))
}
