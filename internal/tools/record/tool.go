package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// tool is one file of the directory tools. Its lines up to the first "-- NAME --" are:
//
//	npm PACKAGE...     installed in the project, with its dependencies; also: go PACKAGE@VERSION..., apt PACKAGE...
//	version NAME COMMAND   tells the version, which is otherwise that of the first package of npm
//	setup COMMAND      run in the project, in order, before anything is recorded
//	run COMMAND        the command whose terminal is recorded
//	once               the command ends by itself: it runs again for each break and each repair
//	get URL            asked again and again while a state is waited for
//	browse URL         a page that Chromium shows from the clean start on
//	ready REGEXP       printed by a clean start
//	edit FILE OLD => NEW
//	error FILE:LINE[:COLUMN] REGEXP   printed after the edits; its first group, or all, is the message
//	fixed REGEXP       printed after the edits were undone; without a REGEXP, every URL answers with 200 again
//	silent             the same where the tool has no words for it; so is fixed if nothing at all is printed
//
// An error without a line is FILE:0. The rest are the files of the project.
type tool struct {
	name, run, version string
	npm, gomod, apt    []string
	setup, urls        []string
	page               string
	once               bool
	ready              *regexp.Regexp
	rounds             []round
	files              map[string]string
}

// round is a break and its repair.
type round struct {
	edits  []edit
	errors []fault
	fixed  *regexp.Regexp // may be nil
	silent bool           // the tool says nothing
}

type edit struct{ file, from, to string }

// fault is an error that the edits cause: where, and what is printed about it.
type fault struct {
	where   string
	message *regexp.Regexp
}

// readTool reads the description of a tool.
func readTool(name string) (*tool, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t := &tool{name: strings.TrimSuffix(filepath.Base(name), ".txt"), files: map[string]string{}}
	file, r := "", round{}
	for i, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(rest, " --") {
			file = strings.TrimSuffix(rest, " --")
			t.files[file] = ""
			continue
		}
		if file != "" {
			t.files[file] += line + "\n"
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		if err := t.directive(line, &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	for file, text := range t.files {
		t.files[file] = strings.TrimRight(text, "\n") + "\n"
	}
	if t.run == "" || len(t.rounds) == 0 {
		return nil, fmt.Errorf("%s: it takes run, edit, error and fixed", name)
	}
	return t, nil
}

// directive takes one line; r is the round that has begun.
func (t *tool) directive(line string, r *round) (err error) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "npm":
		t.npm = append(t.npm, strings.Fields(rest)...)
	case "go":
		t.gomod = append(t.gomod, strings.Fields(rest)...)
	case "apt":
		t.apt = append(t.apt, strings.Fields(rest)...)
	case "version":
		t.version = rest
	case "setup":
		t.setup = append(t.setup, rest)
	case "run":
		t.run = rest
	case "once":
		t.once = true
	case "get":
		t.urls = append(t.urls, rest)
	case "browse":
		t.page = rest
	case "ready":
		t.ready, err = regexp.Compile("(?m)" + rest)
	case "edit":
		e := edit{}
		var ok bool
		e.file, rest, _ = strings.Cut(rest, " ")
		if e.from, e.to, ok = strings.Cut(rest, " => "); !ok || !strings.Contains(t.files[e.file]+e.from, e.from) {
			return fmt.Errorf("edit FILE OLD => NEW is wanted, not %q", line)
		}
		r.edits = append(r.edits, e)
	case "error":
		f := fault{}
		f.where, rest, _ = strings.Cut(rest, " ")
		if f.message, err = regexp.Compile("(?m)" + rest); err == nil {
			r.errors = append(r.errors, f)
		}
	case "fixed", "silent":
		r.silent = word == "silent"
		if rest != "" {
			r.fixed, err = regexp.Compile("(?m)" + rest)
		}
		t.rounds = append(t.rounds, *r)
		*r = round{}
	default:
		err = fmt.Errorf("unknown word %q", word)
	}
	return err
}
