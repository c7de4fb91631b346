package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// inDir runs the command with the tokens of a directory, and returns its output.
func inDir(t *testing.T, dir string, args ...string) (stdout string, status int) {
	t.Helper()
	var out, errs strings.Builder
	args = append(args, "--tokens", filepath.Join(dir, "tokens.json"))
	status = run(t.Context(), args, &out, &errs)
	return out.String() + errs.String(), status
}

func TestPeopleCommands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	for _, step := range []struct {
		line   string
		status int
		want   string // a regular expression
	}{
		{"token create bob --role observer", 0, "tetherhost_"},
		{"token create ann-laptop --once --owner ann", 0, "tether"},
		{"token create ci --role agent --owner ann", 0, "tetherhost_"},
		{"token create box", 0, "tetherhost_"},
		{"token create root --role admin", 0, "tetherhost_"},
		{"token create Ann --role observer", 1, "names are given once"},
		{"token create bob --role agent --owner eve", 1, "one name has one role"},
		{"token create box --role observer", 1, "one name has one role"},
		{"token create ci --role agent --owner eve", 1, "belongs to somebody else"},
		{"token create ann --role agent", 1, "ann is, or was, a person's name"},
		{"token create ANN", 1, "a person's name"},
		{"token create ann --once", 1, "a person's name"},
		{"token create dave --role operator --owner dave", 1, "a person's name"},
		{"token create x --owner ci", 1, "the name ci is that of a token for the role agent"},
		{"token owner box root", 1, "the name root is that of a token for the role admin"},
		{"people ls", 0, `^(?:[^d]|d[^a])*$`}, // no dave
		{"approve 000000 --owner eve", 1, "no machine waits with this code"},
		{"token create fred --once --role observer", 2, "--once needs the role machine"},
		{"token owner nothing eve", 1, "no such token"},
		{"token ls", 0, `ci\s+agent\s+ann`},
		{"people ls", 0, `not in force[\s\S]*bob\s+-\s+observer bob`},
		{"group add web bob carol", 1, "no such person"},
		{"group add web bob ann", 0, ""},
		{"group add web", 2, "missing argument"},
		{"group ls", 0, `web\s+bob, ann`},
		{"grant ann-laptop --to bob,group:web", 0, "bob, group:web may watch"},
		{"grant ann-laptop --to dave", 1, "nobody here is called"},
		{"grant ann-laptop", 2, "--to is missing"},
		{"grant nothing --to bob", 1, "no machine"},
		{"grants ls", 0, `ann-laptop\s+ann\s+group:web`},
		{"people on", 0, `bob \(observer\) does not see any more: ann-laptop \(of ann\), box \(of the administrator\)\nci \(agent\) does not see any more: box \(of the administrator\)\nroot \(admin\) does not see any more: ann-laptop \(of ann\)\nthe host's own token does not see any more: ann-laptop\naudiences are in force`},
		{"people ls", 0, "are in force"},
		{"token owner box ann", 0, "box belongs to ann"},
		{"token owner nothing ann", 1, "no such token"},
		{"token owner box -", 0, "the administrator"},
		{"grants end ann-laptop bob", 0, "ended 1"},
		{"grants end ann-laptop bob", 1, "no such grant"},
		{"group rm web bob", 0, ""},
		{"group rm web", 0, ""},
		{"group rm web", 1, "no such group"},
		{"people rm ann", 0, `revoked .*\n[\s\S]*ann has left`},
		{"people rm ann", 1, "no such person"},
		{"token create box2 --owner ann", 1, "names are given once"},
		{"people off", 0, "see all"},
		{"people nonsense", 2, "unknown command"},
	} {
		got, status := inDir(t, dir, strings.Fields(step.line)...)
		if status != step.status || !regexp.MustCompile(step.want).MatchString(got) {
			t.Errorf("tether-host %s: %d, want %d\n%s\nwant %s", step.line, status, step.status, got, step.want)
		}
	}
	got, _ := inDir(t, dir, "people", "ls", "--json")
	var list struct {
		Audiences bool
		People    []struct {
			ID, Name string
			Ended    bool
			Owns     []string
		}
	}
	if err := json.Unmarshal([]byte(got), &list); err != nil || list.Audiences || len(list.People) != 2 || !list.People[1].Ended || len(list.People[1].Owns) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := secret.ReadFile(filepath.Join(dir, "tokens-people.json")); err != nil { // others have no access
		t.Error(err)
	}
}

// The ten commands of the docs set up a team of three from nothing: with real programs,
// and nobody is shown anything without a grant.
func TestATeamInTenCommands(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/HOST.md"))(t)
	_, text, _ := strings.Cut(string(page), "A team of three, from nothing:")
	_, text, _ = strings.Cut(text, "```sh\n")
	text, _, _ = strings.Cut(text, "```")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 10 {
		t.Fatalf("%d commands", len(lines))
	}
	s := newStage(t)
	s.signed()
	script := "set -e\numask 077\n"
	for _, line := range lines {
		code, _, _ := strings.Cut(line, "  #")
		if strings.HasPrefix(code, "tether-host --listen") {
			code = "tether-host --listen 127.0.0.1:0 --sessions --token-file own.token >host.out 2>host.log & echo $! >host.pid\nuntil grep -q READY host.out; do sleep 0.1; done\n" +
				"address=$(sed -n 's/^READY ws:..//p' host.out)"
		}
		if strings.HasPrefix(code, "tether lend") { // the machine may have to hear first that audiences are in force
			code = "for try in $(seq 100); do " + code + " && break || sleep 0.2; done"
		}
		script += strings.ReplaceAll(code, "wss://host.example", "ws://$address") + "\n"
	}
	t.Cleanup(func() { _ = s.command("/bin/sh", "-c", "kill $(cat host.pid)").Run() })
	// Bob sees it by the group, the agent by its name, carol not, and the administrator
	// its name.
	script += `
sees() { for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do tether watch --list --token-file "$1" ws://$address >list.out 2>&1 || true; grep -q dev list.out && return 0; sleep 0.2; done; return 1; }
sees ann.token && sees bob.token
! tether watch --list --token-file carol.token ws://$address | grep -q dev
tether-host terminals --url ws://$address --token-file own.token >terminals.out
`
	// What the configuration lends to Bob he sees, and the agent does not.
	script += `
mkdir -p "$(dirname "$(tether config path)")"
printf '[[terminal]]\nname = "docs"\ncommand = ["sleep", "1000"]\naudience = ["bob"]\n' >>"$(tether config path)"
tether daemon --replace --background
tether up docs
shows() { for try in $(seq 50); do tether watch --list --token-file "$1" ws://$address >list.out 2>&1 || true; grep -q docs list.out && return 0; sleep 0.2; done; return 1; }
shows bob.token
! tether watch --list --token-file ci.token ws://$address | grep -q docs
`
	out, err := s.command("/bin/sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	listed, _ := os.ReadFile(filepath.Join(s.dir, "terminals.out"))
	if !regexp.MustCompile(`ann-laptop/dev\s+ann\s+running\s.*ann, group:web, agent:ci`).Match(listed) {
		t.Errorf("terminals:\n%s", listed)
	}
}

// A person and an agent that have one name, in files from before, are named when the host
// starts.
func TestOneNameForTwo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	if out, status := inDir(t, dir, "token", "create", "ann", "--role", "observer"); status != 0 {
		t.Fatal(out)
	}
	tokens := must.Get(access.Open(access.File(filepath.Join(dir, "tokens.json"))))(t)
	must.Get(tokens.Revoke("ann"))(t)
	if _, _, err := tokens.Create("ann", rights.RoleAgent, 0); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--tokens", filepath.Join(dir, "tokens.json"))
	r.end(t)
	if said := r.stderr.String(); !strings.Contains(said, "a person has the name of this token, too") || !strings.Contains(said, "ann") || !strings.Contains(said, "agent") {
		t.Errorf("the host says: %s", said)
	}
}
