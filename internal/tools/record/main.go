// Command record makes the recordings of today's tools for the tests of the package
// problems.
//
// It installs the newest version of each tool, starts it in a terminal for a small
// project, breaks files and repairs them as the output tells, and writes NAME.out, what
// the terminal got, NAME.want, the truth about it, and its line in versions.tsv. The
// tools are in the directory tools, see tool.go. Addresses, names and directories of the
// machine are replaced, and secrets masked.
//
// NAME.want begins with the directory and the command. Then come, in the order of the
// output, errors (FILE:LINE[:COLUMN] MESSAGE, line 0 for a tool that names none) and
// offsets: clean is the end of the clean start, run where the command ran again, broken
// where the errors before must still be reported, repaired where they are gone. silent is
// a repair after which the tool has printed nothing; its errors are not counted as
// repaired.
//
//	go run ./internal/tools/record
//	go run ./internal/tools/record -keep vite next
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	toolsDir = "internal/tools/record/tools"
	outDir   = "problems/testdata/recorded"
	versions = outDir + "/versions.tsv"
)

func main() {
	keep := flag.Bool("keep", false, "keep the installed tools for the next call")
	work := flag.String("work", filepath.Join(os.TempDir(), "dev"), "the directory of the tools and projects; its name may be in recordings that cut paths off")
	patience := flag.Duration("patience", 2*time.Minute, "how long to wait for what a tool should print")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	failed, err := recordAll(ctx, *work, *keep, *patience, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(failed) > 0 {
		fmt.Fprintln(os.Stderr, "not recorded, their files are as they were:", strings.Join(failed, " "))
		os.Exit(1)
	}
}

// recordAll records the named tools, or all, one after the other.
func recordAll(ctx context.Context, work string, keep bool, patience time.Duration, only []string) (failed []string, err error) {
	names, err := filepath.Glob(toolsDir + "/*.txt")
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%s has no tools; call it in the top directory of the repository", toolsDir)
	}
	var tools []*tool
	for _, name := range names {
		t, err := readTool(name)
		if err != nil {
			return nil, err
		}
		if len(only) == 0 || slices.Contains(only, t.name) {
			tools = append(tools, t)
		}
	}
	if len(tools) < len(only) {
		return nil, fmt.Errorf("%s has only %d of the tools %q", toolsDir, len(tools), only)
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	if work, err = filepath.EvalSymlinks(work); err != nil {
		return nil, err
	}
	for _, t := range tools {
		r := &recorder{tool: t, root: filepath.Join(work, t.name), patience: patience}
		err := r.record(ctx)
		if !keep {
			err = firstOf(err, os.RemoveAll(r.root))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", t.name, err)
			failed = append(failed, t.name)
		}
		if ctx.Err() != nil {
			return failed, ctx.Err()
		}
	}
	return failed, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// enter puts the line of a recording into the table of versions.
func enter(name, version string) error {
	old, err := os.ReadFile(versions)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var lines []string
	for line := range strings.Lines(string(old)) {
		if !strings.HasPrefix(line, name+"\t") && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	lines = append(lines, fmt.Sprintf("%s\t%s\t%s\n", name, version, time.Now().UTC().Format("2006-01")))
	slices.Sort(lines)
	return os.WriteFile(versions, []byte("# recording\tversion\tmonth\n"+strings.Join(lines, "")), 0o644)
}
