package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// command runs the command with the tokens of a directory, and returns what it printed.
func inDir(t *testing.T, dir string, args ...string) (stdout string, status int) {
	t.Helper()
	var out, errs strings.Builder
	args = append(args, "--tokens", filepath.Join(dir, "tokens.json"))
	status = run(t.Context(), args, &out, &errs)
	return out.String() + errs.String(), status
}

func TestPeopleCommands(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
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
	if info, err := os.Stat(filepath.Join(dir, "tokens-people.json")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info, err)
	}
}
