package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// table is the description of one JSON object in docs/CLI.md: kinds by field, and which
// are marked as absent at times.
type table struct {
	kinds  map[string]string
	maybe  map[string]bool
	embeds []string // tables whose fields it has, too
}

// documented are the tables of docs/CLI.md, by heading: a command ("ls") or a type
// ("[Terminal](#terminal)").
func documented(t *testing.T) map[string]*table {
	t.Helper()
	page := must.Get(os.ReadFile("../../docs/CLI.md"))(t)
	_, text, _ := strings.Cut(string(page), schemaStart)
	all := map[string]*table{}
	var now *table
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			now = &table{kinds: map[string]string{}, maybe: map[string]bool{}}
			if strings.HasPrefix(heading, "`") {
				now.kinds["schema_version"] = "number" // the page says that once
			}
			for _, name := range strings.Split(heading, ", ") {
				if command, ok := strings.CutPrefix(name, "`tether "); ok {
					name = strings.TrimSuffix(command, "`")
				} else {
					name = fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
				}
				all[name] = now
			}
			continue
		}
		item := strings.TrimPrefix(line, "- ")
		for part := range strings.SplitSeq(item, "; ") {
			part, _, _ = strings.Cut(part, ": ")
			for one := range strings.SplitSeq(part, ", ") {
				if name, ok := strings.CutPrefix(one, "the fields of "); ok {
					now.embeds = append(now.embeds, name)
					continue
				}
				name, ok := strings.CutPrefix(one, "`")
				if !ok {
					continue // more words about the field before
				}
				name, kind, _ := strings.Cut(name, "`")
				name, maybe := strings.CutSuffix(name, "?")
				now.kinds[name], now.maybe[name] = cmp.Or(strings.TrimSpace(kind), "string"), maybe
			}
		}
	}
	for _, is := range all {
		for _, name := range is.embeds {
			maps.Copy(is.kinds, all[name].kinds)
			maps.Copy(is.maybe, all[name].maybe)
		}
		is.embeds = nil
	}
	if len(all) < 30 {
		t.Fatalf("docs/CLI.md has only %d tables", len(all))
	}
	return all
}

// obeys reports where a value is not of its kind.
func obeys(tables map[string]*table, where, kind string, v any) (bad []string) {
	if one, ok := strings.CutSuffix(kind, "[]"); ok {
		list, ok := v.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v, want a %s", where, v, kind)}
		}
		for i, e := range list {
			bad = append(bad, obeys(tables, fmt.Sprintf("%s[%d]", where, i), one, e)...)
		}
		return bad
	}
	if is := tables[kind]; is != nil {
		object, ok := v.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v, want a %s", where, v, kind)}
		}
		return is.fits(tables, where, object)
	}
	ok := false
	switch x := v.(type) {
	case string:
		_, err := time.Parse(time.RFC3339, x)
		ok = kind == "string" || kind == "time" && err == nil
	case float64:
		ok = kind == "number"
	case bool:
		ok = kind == "boolean"
	case nil:
		return nil // missing
	}
	if !ok {
		bad = append(bad, fmt.Sprintf("%s is %v, want a %s", where, v, kind))
	}
	return bad
}

func (is *table) fits(tables map[string]*table, where string, object map[string]any) (bad []string) {
	for field, v := range object {
		if is.kinds[field] == "" {
			bad = append(bad, fmt.Sprintf("%s.%s is not documented", where, field))
			continue
		}
		bad = append(bad, obeys(tables, where+"."+field, is.kinds[field], v)...)
	}
	for field := range is.kinds {
		if _, there := object[field]; !there && !is.maybe[field] {
			bad = append(bad, fmt.Sprintf("%s.%s is not there", where, field))
		}
	}
	slices.Sort(bad)
	return bad
}

// The real output of commands with --json matches docs/CLI.md.
func TestJSONIsAsDocumented(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	h := &testHost{}
	must.Do(t, h.start(""))
	defer h.stop()
	must.Do(t, os.MkdirAll(filepath.Join(home, "config"), 0o700))
	declared := "[[terminal]]\nname = \"web\"\ncommand = [\"sleep\", \"1000\"]\n[[lend.rules]]\neffect = \"never\"\ndirectories = [\"/nowhere\"]\n"
	must.Do(t, os.WriteFile(filepath.Join(home, "config", "config.toml"), []byte(declared), 0o600))
	if out, status := command(t, "pair", "--without-token", "--name", "lab", "ws://"+h.address); status != 0 {
		t.Fatalf("pair: %s", out)
	}
	command(t, "run", "--detach", "--name", "server", "--host", "lab", "--", "devserver", "0")
	command(t, "run", "--detach", "--name", "over", "--private", "--", "sh", "-c", "exit 3")
	for range 2 {
		id, _ := command(t, "run", "--detach", "--name", "again", "--", "true")
		command(t, "wait", strings.TrimSpace(id), "--exit")
	}
	testkit.Eventually(t, patience, "there are two runs to compare", func() bool {
		_, status := command(t, "diff", "again")
		return status == 0
	})
	command(t, "wait", "server", "--pattern", `localhost:\d+`)
	command(t, "wait", "over", "--exit")
	testkit.Eventually(t, patience, "the terminal is at the host", func() bool {
		out, _ := command(t, "watch", "--list", "lab")
		return strings.Contains(out, "server")
	})
	lines := map[string]string{ // where a command takes more than itself
		"commands": "commands server", "problems": "problems server", "wait": "wait over --exit", "ports": "ports server", "up": "up web", "restart": "restart web", "watch": "watch --list lab",
		"diff": "diff again", "fetch": "fetch server /", "policy check": "policy check --line", "token create": "token create helper",
	}
	tables := documented(t)
	commands := slices.Sorted(keysOf(printed))
	for _, c := range commands {
		if c == "down" { // last: ls and up have something to show before
			continue
		}
		jsonObeys(t, tables, c, lines[c])
	}
	jsonObeys(t, tables, "ls", "")
	jsonObeys(t, tables, "token ls", "")
	jsonObeys(t, tables, "down", "down web")
}

// jsonObeys runs a command; line is "" if it takes nothing.
func jsonObeys(t *testing.T, tables map[string]*table, name, line string) {
	t.Helper()
	if line == "" {
		line = name
	}
	args := append(strings.Fields(line), "--json")
	if name == "policy check" {
		args = append(args, "--", "npm run dev | tee log")
	}
	out, status := command(t, args...)
	var object map[string]any
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		if name == "service status" && status != 0 && out == "" {
			return // there is no service manager
		}
		t.Errorf("tether %s: %d, %v: %q", line, status, err, out)
		return
	}
	if object["schema_version"] != float64(1) {
		t.Errorf("tether %s: schema_version is %v", line, object["schema_version"])
	}
	if tables[name] == nil {
		t.Fatalf("docs/CLI.md has no table of tether %s", name)
	}
	for _, bad := range tables[name].fits(tables, name, object) {
		t.Error(bad)
	}
}

func TestJSONCanBeOtherwise(t *testing.T) {
	inner := &table{kinds: map[string]string{"n": "number", "at": "time"}, maybe: map[string]bool{"at": true}}
	tables := map[string]*table{"x": {kinds: map[string]string{"list": "[Inner](#inner)[]", "ok": "boolean", "name": "string"}, maybe: map[string]bool{"name": true}}, "[Inner](#inner)": inner}
	for text, bad := range map[string]int{
		`{"list":[{"n":1,"at":"2026-01-02T03:04:05Z"},{"n":2}],"ok":true,"name":"a"}`: 0,
		`{"list":[],"ok":true}`:                      0,
		`{"list":[]}`:                                1,
		`{"list":{},"ok":1}`:                         2,
		`{"list":[1],"ok":true,"more":2}`:            2,
		`{"list":[{"n":"1","at":"now"}],"ok":false}`: 2,
	} {
		var object map[string]any
		must.Do(t, json.Unmarshal([]byte(text), &object))
		if got := tables["x"].fits(tables, "x", object); len(got) != bad {
			t.Errorf("%s: complaints %q, want %d", text, got, bad)
		}
	}
}
