package policy_test

import (
	"strings"
	"testing"

	"tether/agent/config"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
)

// In a terminal that tether made for an agent, tether's reading commands pass, spelled
// plainly. Everything else of tether's command line is denied, however it is spelled.
func TestAgentsOwnCommandLine(t *testing.T) {
	for _, c := range []struct{ want, lines string }{
		{"allow default", `
			tether events --follow
			tether events web --pattern '(?i)error|failed' --follow --count 1 --cursor-file .tether-web
			tether events web api --exit --failed --command --problems --awaiting --ready --ports --idle 5s --json
			tether wait web --pattern ready --timeout 5m
			tether wait web --command --verified --new --timeout=10m --settle 0
			tether wait web --url http://localhost:3000/health --timeout 1m
			tether wait web --port 3000 --idle 2s --json
			tether wait web
			tether read --digest web
			tether read web --tail 20 --color never -f
			tether read web --command 3; tether read --screen web
			tether problems web --since 12 --max 5 --json
			tether ls
			tether ls -a --json
			tether ls --wide --changes --watchers
			tether ports
			tether ports web --json
			tether whoami --json
			tether events --help
			tether ls -h
			tether --version
			["tether","events","web","--follow","--count","1"]
			["tether","read","--","web"]
			["sh","-c","tether wait web --pattern ready && npm test"]
			["bash","-lc","cd web; tether ls | grep web"]
			cd web && tether wait web --pattern ready --timeout 5m && npm test
			timeout 60 tether events web --follow
			CI=1 tether wait web --exit
			until tether events web --follow --count 1 --cursor-file .tether-web; do sleep 1; done
			tether events web --cursor-file /tmp/x
			tether read web > web.log 2>&1
			tether wait web & tether wait api; wait`},
		{"ask builtin.files", `
			tether events web --cursor-file ~/.bashrc
			tether events web --cursor-file=/etc/x
			tether events web --cursor ../x
			cd .. && tether events web --cursor-file x
			tether read web > ../x
			["tether","events","web","--cursor-file","/etc/x"]`},
		{"deny builtin.tether", `
			tether
			tether on web -- true
			tether on web --pattern x -- tether ls
			tether approve q-1
			tether run -- ls
			tether attach web
			tether commands web
			tether kill web
			tether lend web
			tether list
			tether status
			tether policy check -- ls
			tether token ls
			tether mcp
			tether __complete read ''
			tether read web --raw
			tether read --raw=true web
			tether problems web --raw
			tether events --raw
			tether events --ra
			tether events --exec rm
			tether events --follow --frobnicate
			tether wait web --pattern x --on rm
			tether read -x web
			tether read -fr web
			tether ls --home=/x
			tether --home=/x ls
			tether --home /x ls
			tether -- ls
			tether --json ls
			tether LS
			tether 'ls '
			tether "$X"
			tether $X ls
			tether read $X
			tether read "$X"
			tether read web --tail $N
			tether events web --cursor-file "$X"
			tether read *
			tether read {web,--raw}
			./tether ls
			../tether ls
			/usr/local/bin/tether ls
			/usr/bin/tether ls
			~/.local/bin/tether ls
			C:\\bin\\tether.exe ls
			tether.exe ls
			Tether ls
			TETHER ls
			te"the"r approve q-1
			\tether approve q-1
			TETHER_HOME=/tmp/x tether ls
			TETHER_HOME= tether ls
			TETHER_TOKEN_FILE=x tether whoami
			HOME=/tmp/x tether whoami
			XDG_CONFIG_HOME=x tether whoami
			XDG_RUNTIME_DIR=/tmp/x tether ls
			PATH=.:$PATH tether ls
			LD_PRELOAD=./x.so tether ls
			export TETHER_HOME=/tmp/x; tether ls
			export -n TETHER_AGENT; tether ls
			declare +x TETHER_AGENT; tether ls
			read TETHER_HOME < x; tether ls
			for HOME in /tmp/x; do tether ls; done
			: ${TETHER_HOME:=/tmp/x}; tether ls
			unset TETHER_AGENT; tether ls
			unset $X; tether ls
			env tether ls
			env -i tether ls
			env -u TETHER_AGENT tether ls
			env TETHER_HOME=/tmp/x tether ls
			exec tether ls
			exec -c tether ls
			nohup tether ls
			setsid tether ls
			setsid -f sh -c 'tether ls > x'
			echo web | xargs tether read
			echo --raw | xargs -I{} tether read web {}
			xargs tether ls
			find . -name x -exec tether read {} ;
			find . -name x -exec tether ls ';'
			fd x -x tether read
			parallel tether read ::: web --raw
			watch tether ls
			pkexec tether ls
			doas -u bob tether ls
			ssh localhost tether ls
			ssh localhost 'tether read web'
			tmux new-window 'tether read web'
			tmux new-window tether ls
			docker exec c tether ls
			chroot / tether ls
			busybox sh -c 'tether ls'
			git bisect run tether ls
			npx tether ls
			alias t='tether read'; t --raw web
			t() { tether read "$@"; }; t --raw web
			if true; then (tether kill web); fi
			["env","tether","ls"]
			["tether","read","web","--raw"]
			["./tether","ls"]
			["tether","events","--exec","x"]
			["sh","-c","tether read \"$1\"","x","--raw"]
			["xargs","tether","read"]
			eval tether ls
			tether read $(tether ls)
			["sh","-c","tether read <(ls)"]`},
		{"deny builtin.patterns", `
			tether read web | sh
			tether read web | bash -s`},
		{"deny builtin.substitution", `
			echo $(tether ls)
			diff <(tether read web) x`},
		{"ask builtin.code", `
			/tmp/sh -c 'tether ls'`},
	} {
		for line := range strings.Lines(strings.TrimSpace(c.lines)) {
			line = strings.TrimSpace(line)
			for _, door := range []string{policy.DoorMCP, policy.DoorCLI} {
				r := requestOf(t, door, line)
				r.Cwd = testkit.Abs("/home/p/src")
				if d := engine(t, policy.Options{}).Check(r); d.Effect.String()+" "+d.Rule != c.want {
					t.Errorf("%s at %s: %s by %s (%s), want %s", line, door, d.Effect, d.Rule, d.Reason, c.want)
				}
			}
		}
	}
}

// What surrounds the command counts, too: an agent at a host sees more at this machine's
// own door than its tools show it, and variables lead to other daemons. A person's rule
// lifts that.
func TestWhoUsesTheCommandLine(t *testing.T) {
	own := settings(func(c *config.Policy) {
		c.Rules = []config.PolicyRule{{Name: "mine", Effect: "allow", Argv: []string{"tether"}}}
	})
	ask := settings(func(c *config.Policy) { c.Builtin.Tether = "ask" })
	anyone := settings(func(c *config.Policy) { c.Principals = []config.PolicyIdentity{{Name: "agent:*/*", Default: "allow"}} })
	for _, c := range []struct {
		name    string
		options policy.Options
		actor   term.Actor
		env     []string
		line    string
		want    string
	}{
		{"an agent here", policy.Options{}, agent, []string{"NO_COLOR=1"}, "tether ls", "allow default"},
		{"its variables", policy.Options{}, agent, []string{"TETHER_HOME=/tmp/x"}, "tether ls", "deny builtin.tether"},
		{"its home", policy.Options{}, agent, []string{"HOME=/tmp/x"}, "tether whoami", "deny builtin.tether"},
		{"its path", policy.Options{}, agent, []string{"PATH=/tmp/x"}, "tether ls", "deny builtin.tether"},
		{"for a version they mean nothing", policy.Options{}, agent, []string{"HOME=/tmp/x"}, "tether version", "allow default"},
		{"an agent at a host", anyone, term.AgentAt("lab", "s1"), nil, "tether ls", "deny builtin.tether"},
		{"its other commands", anyone, term.AgentAt("lab", "s1"), nil, "tether --version", "allow default"},
		{"a rule of the person's", own, agent, []string{"HOME=/tmp/x"}, "tether attach web", "allow mine"},
		{"the effect is the person's choice", ask, agent, nil, "tether attach web; HOME=x tether ls", "ask builtin.tether"},
		{"behind what it starts", own, agent, nil, "tether run -- rm x", "deny builtin.commands"},
	} {
		r := policy.Request{Door: policy.DoorMCP, Actor: c.actor, Line: c.line, Env: c.env, Cwd: testkit.Abs("/home/p/src"), Background: true}
		if d := engine(t, c.options).Check(r); d.Effect.String()+" "+d.Rule != c.want {
			t.Errorf("%s: %s by %s (%s), want %s", c.name, d.Effect, d.Rule, d.Reason, c.want)
		}
	}
}
