package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/agent/config"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

func TestOwnRules(t *testing.T) {
	e := engine(t, settings(func(c *config.Policy) {
		c.Rules = []config.PolicyRule{
			{Name: "compose", Effect: "allow", Argv: []string{"docker|podman", "compose", "up|down"}},
			{Name: "no docker", Effect: "deny", Argv: []string{"docker", "run|exec"}, Has: []string{"--privileged|-v*"}, Reason: "not with the host's files"},
			{Name: "docker", Effect: "ask", Argv: []string{"docker"}},
			{Name: "scratch", Effect: "allow", Argv: []string{"rm"}, Has: []string{"scratch"}},
			{Name: "python", Effect: "allow", Argv: []string{"python3", "-c"}, Principals: []string{"agent:trusted*"}},
			{Name: "lines", Effect: "deny", Argv: []string{"curl"}, Doors: []string{"acp"}},
			{Name: "exact", Effect: "allow", Argv: []string{"/opt/bin/unlink"}},
			{Name: "person", Effect: "deny", Argv: []string{"telnet"}, Principals: []string{"user"}},
		}
	}))
	for _, c := range []struct{ who, door, command, want string }{
		{"a", "mcp", `["docker","compose","up"]`, "ask docker"}, // the strictest counts
		{"a", "mcp", `["podman","compose","up","-d"]`, "allow compose"},
		{"a", "mcp", `["docker","run","--privileged","x"]`, "deny no docker"},
		{"a", "mcp", `["docker","run","x"]`, "ask docker"},
		{"a", "mcp", `docker run $X`, "ask no docker"}, // it may be --privileged
		{"a", "mcp", `docker $X`, "ask no docker"},
		{"a", "mcp", `["/usr/bin/docker","ps"]`, "ask docker"},
		{"a", "mcp", `["env","A=1","docker","ps"]`, "ask docker"},
		{"a", "mcp", `["rm","-r","scratch"]`, "allow scratch"},
		{"a", "mcp", `["rm","-r","src"]`, "deny builtin.commands"},
		{"a", "mcp", `rm -r $X`, "deny builtin.commands"}, // it may not be scratch
		{"a", "mcp", `rm scratch; rm src`, "deny builtin.commands"},
		{"a", "mcp", `["./rm","scratch"]`, "deny builtin.commands"}, // another program of that name
		{"a", "mcp", `["/tmp/docker","compose","up"]`, "ask docker"},
		{"a", "mcp", `["./podman","compose","up"]`, "allow default"},
		{"a", "mcp", `["/opt/bin/unlink","x"]`, "allow exact"},
		{"a", "mcp", `["unlink","x"]`, "ask builtin.destructive"},
		{"trusted-1", "mcp", `["python3","-c","1"]`, "allow python"},
		{"a", "mcp", `["python3","-c","1"]`, "ask builtin.code"},
		{"a", "acp", `curl x`, "deny lines"},
		{"a", "mcp", `curl x`, "allow default"},
		{"user", "cli", `["telnet","x"]`, "deny person"},
		{"user", "cli", `["rm","x"]`, "allow user"},
		{"a", "mcp", `["telnet","x"]`, "allow default"},
	} {
		r := requestOf(t, c.door, c.command)
		r.Actor = term.Agent(c.who)
		if c.who == "user" {
			r.Actor = term.User
		}
		if d := e.Check(r); d.Effect.String()+" "+d.Rule != c.want {
			t.Errorf("%s runs %s at %s: %s %s, want %s", c.who, c.command, c.door, d.Effect, d.Rule, c.want)
		}
	}
	r := requestOf(t, "mcp", `["docker","run","-v","/:/x","y"]`)
	if d := e.Check(r); d.Reason != "not with the host's files" {
		t.Errorf("the reason is %q", d.Reason)
	}
}

func TestWrongConfiguration(t *testing.T) {
	rule := func(change func(*config.PolicyRule)) func(*config.Policy) {
		return func(c *config.Policy) {
			r := config.PolicyRule{Name: "mine", Effect: "allow", Argv: []string{"ls"}}
			change(&r)
			c.Rules = append(c.Rules, r)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*config.Policy)
		want   string
	}{
		{"no name", rule(func(r *config.PolicyRule) { r.Name = "" }), "number 1 (\"\"): name is missing"},
		{"no effect", rule(func(r *config.PolicyRule) { r.Effect = "" }), "must be allow, ask or deny"},
		{"no argv", rule(func(r *config.PolicyRule) { r.Argv = nil }), `number 1 ("mine"): argv is missing`},
		{"empty alternative", rule(func(r *config.PolicyRule) { r.Argv = []string{"a||b"} }), "empty alternative"},
		{"empty word", rule(func(r *config.PolicyRule) { r.Has = []string{""} }), "empty alternative"},
		{"wrong door", rule(func(r *config.PolicyRule) { r.Doors = []string{"web"} }), `doors: "web" must be one of`},
		{"wrong principal", rule(func(r *config.PolicyRule) { r.Principals = []string{"bob"} }), `"bob" must be user or agent:NAME`},
		{"test fails to match", rule(func(r *config.PolicyRule) { r.Match = []string{"ls -l", "sl"} }), `match: the rule does not match "sl"`},
		{"test matches", rule(func(r *config.PolicyRule) { r.NotMatch = []string{"sl", "ls -l"} }), `not_match: the rule matches "ls -l"`},
		{"an allowed wrapper allows nothing", rule(func(r *config.PolicyRule) { r.Argv, r.Match = []string{"env"}, []string{"env ls"} }), `match: the rule does not match "env ls"`},
		{"two of a name", func(c *config.Policy) {
			c.Rules = []config.PolicyRule{{Name: "x", Effect: "ask", Argv: []string{"a"}}, {Name: "x", Effect: "ask", Argv: []string{"b"}}}
		}, `number 2: there is another rule called "x"`},
		{"principal without agent", func(c *config.Policy) { c.Principals = []config.PolicyIdentity{{Name: "bob"}} }, `number 1 ("bob"): name must be agent:NAME`},
		{"relative root", func(c *config.Policy) {
			c.Principals = []config.PolicyIdentity{{Name: "agent:*", Roots: []string{"src"}}}
		}, `roots: "src" must be an absolute path`},
		{"root of another home", func(c *config.Policy) {
			c.Principals = []config.PolicyIdentity{{Name: "agent:*", Roots: []string{"~bob"}}}
		}, `roots: "~bob" must be`},
		{"relative writable", func(c *config.Policy) {
			c.Principals = []config.PolicyIdentity{{Name: "agent:*", Writable: []string{"."}}}
		}, `writable: "." must be`},
		{"wrong default", func(c *config.Policy) { c.Default = "maybe" }, "policy.default: \"maybe\" must be"},
		{"several", func(c *config.Policy) {
			c.Rules = []config.PolicyRule{{Name: "x"}, {Name: "y"}}
		}, `number 2 ("y")`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := policy.New(settings(c.change))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestDefaultsOfPrincipals(t *testing.T) {
	e := engine(t, settings(func(c *config.Policy) {
		c.Default = "ask"
		c.Principals = []config.PolicyIdentity{{Name: "agent:in*", Default: "deny"}, {Name: "agent:good", Default: "allow"}}
		c.Rules = []config.PolicyRule{{Name: "ls", Effect: "allow", Argv: []string{"ls"}}}
	}))
	for who, want := range map[string]string{"a": "ask", "intern": "deny", "good": "allow"} {
		r := harmless()
		r.Actor = term.Agent(who)
		if d := e.Check(r); d.Effect.String() != want || d.Rule != "default" {
			t.Errorf("%s: %+v, want %s", who, d, want)
		}
		r.Argv, r.Line = nil, "ls -l | ls"
		if d := e.Check(r); d.Effect != policy.Allow || d.Rule != "ls" {
			t.Errorf("%s may ls: %+v", who, d)
		}
		r.Line = "ls; npm test"
		if d := e.Check(r); d.Effect.String() != want {
			t.Errorf("%s: half of the line is allowed: %+v, want %s", who, d, want)
		}
	}
}

func TestRoots(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, sub := range []string{"src/web", "other", "src2"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, sub), 0o700))
	}
	for link, to := range map[string]string{"src/out": "../other", "in": "src/web"} {
		must.Do(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	o := settings(func(c *config.Policy) {
		c.Principals = []config.PolicyIdentity{{Name: "agent:*", Roots: []string{"~/src", filepath.Join(dir, "absent")}}}
	})
	o.Home = dir
	e := engine(t, o)
	for _, c := range []struct{ cwd, line, want string }{
		{"src", "ls", "allow"},
		{"src/web", "ls", "allow"},
		{"src/new/deeper", "ls", "allow"},
		{"in", "ls", "allow"}, // a link into it
		{"absent", "ls", "allow"},
		{"", "ls", "deny"},
		{"other", "ls", "deny"},
		{"src2", "ls", "deny"},
		{"src/out", "ls", "deny"}, // a link out of it
		{"src/../other", "ls", "deny"},
		{"src/out/new", "ls", "deny"},
		{"src", "cd web && ls", "allow"},
		{"src", "cd .. && ls", "deny"},
		{"src", "cd out && ls", "deny"},
		{"src", "cd /etc && ls", "deny"},
		{"src", "cd && ls", "deny"},
		{"src", "cd - && ls", "deny"},
		{"src", "cd $X && ls", "ask"},
		{"src", "pushd ../other", "deny"},
	} {
		r := policy.Request{Door: "mcp", Actor: agent, Line: c.line, Cwd: filepath.Join(dir, c.cwd)}
		if c.cwd == "src/../other" {
			r.Cwd = dir + "/src/../other"
		}
		if d := e.Check(r); d.Effect.String() != c.want || d.Effect != policy.Allow && d.Rule != "roots" {
			t.Errorf("%q in %q: %+v, want %s", c.line, c.cwd, d, c.want)
		}
	}
	if d := e.Check(policy.Request{Door: "mcp", Actor: agent, Line: "ls", Cwd: "src"}); d.Effect != policy.Deny {
		t.Errorf("a relative directory: %+v", d)
	}
}

// Nothing in the directory of the command has a say.
func TestProjectsChangeNothing(t *testing.T) {
	dir := t.TempDir()
	text := []byte("[policy]\nblock_list = \"off\"\n[[policy.rules]]\nname = \"x\"\neffect = \"allow\"\nargv = [\"rm\"]\n")
	for _, name := range []string{"config.toml", "tether.toml", ".tether.toml", "policy.toml", ".tether/config.toml", ".config/tether/config.toml"} {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, text, 0o600))
	}
	t.Chdir(dir)
	e := engine(t, policy.Options{})
	if d := e.Check(policy.Request{Door: "mcp", Actor: agent, Argv: []string{"rm", "x"}, Cwd: dir}); d.Effect != policy.Deny {
		t.Errorf("rm: %+v", d)
	}
}

func TestBlockListModes(t *testing.T) {
	for _, c := range []struct{ mode, command, want string }{
		{"literal", `["npm","run","evaluate"]`, "deny"},
		{"literal", `npm run dev > /dev/null`, "deny"},
		{"literal", `["grep","-r","eval","src"]`, "deny"},
		{"literal", `["rm","x"]`, "deny"},
		{"literal", `["npm","run","dev"]`, "allow"},
		{"literal", `env rm x`, "deny"}, // still parsed, too
		{"off", `rm x`, "allow"},
		{"off", `["bash","-c","eval $(rm x)"]`, "allow"},
		{"off", `if true`, "allow"},
		{"parsed", `npm run dev > /dev/null`, "allow"},
	} {
		e := engine(t, settings(func(p *config.Policy) { p.BlockList = c.mode }))
		if d := e.Check(requestOf(t, "mcp", c.command)); d.Effect.String() != c.want {
			t.Errorf("%s with the list %s: %+v, want %s", c.command, c.mode, d, c.want)
		}
	}
}

func TestBuiltinEffectsCanBeChanged(t *testing.T) {
	e := engine(t, settings(func(c *config.Policy) {
		c.Builtin.Substitution, c.Builtin.Code, c.Builtin.Dynamic, c.Builtin.ACP = "allow", "deny", "deny", []string{"code=ask"}
	}))
	for _, c := range []struct{ door, command, want string }{
		{"mcp", "echo $(id)", "allow"}, {"mcp", "echo $(rm x)", "deny"}, {"mcp", "python3 -c 1", "deny"}, {"acp", "python3 -c 1", "ask"}, {"acp", "$X y", "deny"},
	} {
		if d := e.Check(requestOf(t, c.door, c.command)); d.Effect.String() != c.want {
			t.Errorf("%s at %s: %+v, want %s", c.command, c.door, d, c.want)
		}
	}
}

func TestOddRequests(t *testing.T) {
	device := "deny"
	if filepath.Separator == '\\' {
		device = "ask" // there it is a file outside of the command's directory
	}
	e := engine(t, policy.Options{})
	for _, c := range []struct {
		name string
		r    policy.Request
		want string
	}{
		{"a host", policy.Request{Door: policy.DoorAHP, Actor: term.Host("h"), Argv: []string{"ls"}, Cwd: "/"}, "deny"},
		{"nobody", policy.Request{Argv: []string{"ls"}, Cwd: "/"}, "deny"},
		{"nothing", policy.Request{Actor: agent, Cwd: "/"}, "deny"},
		{"both", policy.Request{Actor: agent, Argv: []string{"ls"}, Line: "ls", Cwd: "/"}, "deny"},
		{"an empty name", policy.Request{Actor: agent, Argv: []string{""}, Cwd: "/"}, "ask"},
		{"a line feed in a name", policy.Request{Actor: agent, Argv: []string{"ls\nrm"}, Cwd: "/"}, "ask"},
		{"only blanks", policy.Request{Actor: agent, Line: "   ", Cwd: "/"}, "ask"},
		{"a comment", policy.Request{Actor: agent, Line: "# rm x", Cwd: "/"}, "ask"},
		{"a huge line", policy.Request{Actor: agent, Line: strings.Repeat("a ", 1<<20), Cwd: "/"}, "ask"},
		{"many words", policy.Request{Actor: agent, Argv: make([]string, 100_000), Cwd: "/"}, "ask"},
		{"a line for another shell", policy.Request{Actor: agent, Line: "ls", Shell: "/usr/bin/fish", Cwd: "/"}, "ask"},
		{"a line for PowerShell", policy.Request{Actor: agent, Line: "ls", Shell: `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`, Cwd: "/"}, "ask"},
		{"a line for zsh", policy.Request{Actor: agent, Line: "ls", Shell: "/bin/zsh", Cwd: "/"}, "allow"},
		{"a variable that loads code", policy.Request{Actor: agent, Argv: []string{"ls"}, Env: []string{"CI=1", "LD_PRELOAD=x"}, Cwd: "/"}, "ask"},
		{"a harmless one", policy.Request{Actor: agent, Argv: []string{"ls"}, Env: []string{"CI=1", "PAGER=x"}, Cwd: "/"}, "allow"},
		{"a device by way of ..", policy.Request{Actor: agent, Line: "echo > ../dev/sda", Cwd: "/tmp"}, device},
	} {
		if d := e.Check(c.r); d.Effect.String() != c.want || d.Rule == "" || d.Reason == "" {
			t.Errorf("%s: %+v, want %s", c.name, d, c.want)
		}
	}
}

// In a directory below /tmp, too, a line that leaves it writes where nobody has read.
func TestWritesAfterAMove(t *testing.T) {
	e := engine(t, policy.Options{})
	for line, want := range map[string]policy.Effect{
		"cd /etc && echo x > passwd": policy.Ask, "cd && echo x > .bashrc": policy.Ask, "cd .. && echo x > y": policy.Ask,
		"cd sub && echo x > y": policy.Allow, "cd /etc && echo x > /tmp/y": policy.Allow, "echo x > y": policy.Allow,
	} {
		r := policy.Request{Door: policy.DoorMCP, Actor: agent, Line: line, Cwd: "/tmp/work"}
		if d := e.Check(r); d.Effect != want {
			t.Errorf("%s: %s by %s, want %s", line, d.Effect, d.Rule, want)
		}
	}
}

// A request that the block list denies gets its one sentence; a question gives its
// reason.
func TestQuestionsOfTheBlockListSayWhy(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"rm -r x", "rm -r x: rm is on the block list"},
		{"echo $(id)", "$(id): the output of a command becomes part of the line"},
		{"curl x | sh", "sh: a shell runs what another command prints"},
		{"eval x", "eval x runs text as a command"},
		{"echo x > /dev/sda", "it writes to the device /dev/sda"},
		{`python3 -c "eval(1)"`, "python3 -c eval(1): its code runs text as a command (eval)"},
	} {
		for _, effect := range []string{"deny", "ask"} {
			e := engine(t, settings(func(p *config.Policy) {
				p.Builtin.Commands, p.Builtin.Patterns, p.Builtin.Substitution = effect, effect, effect
			}))
			want := c.want
			if effect == "deny" {
				want = policy.Blocked
			}
			if d := e.Check(policy.Request{Door: policy.DoorMCP, Actor: agent, Line: c.line, Cwd: "/home/p"}); d.Effect.String() != effect || d.Reason != want {
				t.Errorf("%s: %s, %q; want %s, %q", c.line, d.Effect, d.Reason, effect, want)
			}
		}
	}
}

// A directory that is granted through a link is known by its real name, too: agents may
// have made the links in it.
func TestGrantedThroughALink(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	must.Do(t, errors.Join(os.Mkdir(filepath.Join(base, "data"), 0o700), os.Symlink("data", filepath.Join(base, "disk"))))
	e := engine(t, settings(func(c *config.Policy) {
		c.Principals = []config.PolicyIdentity{{Name: "agent:a", Sandbox: "auto", Writable: []string{filepath.Join(base, "disk")}}}
	}))
	for _, name := range []string{"disk", "data"} {
		if path := filepath.Join(base, name); !slices.Contains(e.Granted(), path) {
			t.Errorf("%s is not in %q", path, e.Granted())
		}
	}
}
