package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

const licencesName = "LICENSES.txt"

// licences writes our licence and those of all linked modules, most of which must
// accompany programs.
func (r *release) licences(ctx context.Context, to string) error {
	ours, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nThe programs contain the works below, each under its own licence.\n", ours)
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	if err := notice(&b, "Go, its standard library", strings.TrimSpace(string(goroot))); err != nil {
		return err
	}
	modules, err := r.modules()
	if err != nil {
		return err
	}
	dirs, err := moduleDirs(ctx, modules)
	if err != nil {
		return err
	}
	for _, m := range modules {
		if err := notice(&b, m.Path+" "+m.Version, dirs[m.Path]); err != nil {
			return err
		}
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

// modules are those linked into any of the programs, sorted.
func (r *release) modules() ([]debug.Module, error) {
	var all []debug.Module
	for _, t := range r.targets {
		for _, name := range programs {
			info, err := buildinfo.ReadFile(r.program(t, name))
			if err != nil {
				return nil, err
			}
			for _, m := range info.Deps {
				if !slices.ContainsFunc(all, func(have debug.Module) bool { return have.Path == m.Path }) {
					all = append(all, *m)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// moduleDirs asks go where the sources of modules are.
func moduleDirs(ctx context.Context, modules []debug.Module) (map[string]string, error) {
	args := []string{"list", "-m", "-json=Path,Dir"}
	for _, m := range modules {
		args = append(args, m.Path)
	}
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return dirs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list -m: %w", err)
		}
		dirs[m.Path] = m.Dir
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([-.].*)?$`)

// Sentences of licences whose works may be part of our programs: MIT, ISC, zlib, BSD,
// Apache.
var permits = []string{
	"Permission is hereby granted, free of charge",
	"Permission to use, copy, modify, and",
	"Permission is granted to anyone to use this software for any purpose",
	"Redistribution and use in source and binary forms",
	"Apache License Version 2.0",
}

// permissive reports whether a text is one of those licences, with any line breaks.
func permissive(text []byte) bool {
	line := strings.Join(strings.Fields(string(text)), " ")
	return slices.ContainsFunc(permits, func(grant string) bool { return strings.Contains(line, grant) })
}

// notice adds the files in dir that state a licence. If none is permissive that is an
// error: a person must look at it.
func notice(w io.Writer, title, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("licence of %s: %w", title, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = found || permissive(text)
		fmt.Fprintf(w, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("-", 72), title, e.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("no permissive licence found for %s in %s", title, dir)
	}
	return nil
}
