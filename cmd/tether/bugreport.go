package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/doctor"
	"tether/internal/version"
	"tether/platform/dirs"
	"tether/platform/secret"
	"tether/vocab"
)

// A report contains diagnostics and nothing private. Its content is built from an
// allow-list; nothing is copied and then cleaned, except the daemon's log, which contains
// neither secrets nor terminal output (docs/RELIABILITY.md).

// reportLog bounds the part of a log that a report contains, in bytes.
const reportLog = 512 << 10

func bugreportCommand(a *app) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "bugreport", Short: "write an archive with diagnostics for a bug report", Args: noArgs,
		Long: `write an archive with diagnostics for a bug report: versions, the output of tether
doctor, the status, the configuration without values that may be secret, the daemon's
log, metrics and goroutines, and the state and size of each terminal.

It contains no tokens, no values of variables, no command lines, and no terminal
output or input. Check its content before you send it: tar -tzf lists the files.`,
		Example: "  tether bugreport\n  tether bugreport --output - | tar -tz",
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := dirs.Get()
			if err != nil {
				return err
			}
			done := a.progress(c.Context(), "collecting diagnostics")
			data, err := a.report(c.Context(), d)
			done()
			if err != nil {
				return err
			}
			if output == "-" {
				a.stdout.Write(data)
				return nil
			}
			if output == "" {
				output = "tether-bugreport-" + time.Now().Format("20060102-150405") + ".tar.gz"
			}
			if err := writeNew(output, data); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, output)
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE`, which must not exist yet; - for standard output")
	return c
}

// writeNew creates a file with data. It fails if the file exists.
func writeNew(name string, data []byte) error {
	f, err := createNew(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// createNew creates a file that only this user may read. It fails if the file exists.
func createNew(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, &hinted{err, "choose another file with --output FILE"}
	}
	return f, nil
}

// report is the archive.
func (a *app) report(ctx context.Context, d dirs.Dirs) ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	archive := tar.NewWriter(packed)
	now := time.Now()
	for _, part := range a.reportParts(ctx, d) {
		err := archive.WriteHeader(&tar.Header{Name: "tether-bugreport/" + part.name, Mode: 0o600, Size: int64(len(part.data)), ModTime: now})
		if err == nil {
			_, err = archive.Write(part.data)
		}
		if err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), packed.Close())
	return out.Bytes(), err
}

// reportPart is one file of the archive.
type reportPart struct {
	name string
	data []byte
}

// reportParts collects the files. A file that cannot be collected contains the error.
func (a *app) reportParts(ctx context.Context, d dirs.Dirs) []reportPart {
	client := localclient.New(agent.SocketPath(d))
	defer client.Close()
	var all []reportPart
	add := func(name string, data []byte, err error) {
		if err != nil {
			name, data = name+".missing.txt", []byte(err.Error()+"\n")
		}
		all = append(all, reportPart{name, data})
	}
	addJSON := func(name string, v any, err error) {
		data, encoding := json.MarshalIndent(v, "", "  ")
		add(name, data, errors.Join(err, encoding))
	}
	build, _ := debug.ReadBuildInfo() // the system, the compiler and the modules
	add("version.txt", fmt.Appendf(nil, "tether %s\n%d processors\n%v", version.Text(), runtime.NumCPU(), build), nil)
	addJSON("doctor.json", harmlessChecks(a.examine(ctx)), nil)
	status, err := client.Status(ctx)
	addJSON("status.json", status, err)
	list, err := client.List(ctx)
	addJSON("terminals.json", outlines(list.Terminals), err)
	text, err := harmlessConfig(config.Path(d))
	add("config.toml", text, err)
	metrics, err := client.Metrics(ctx)
	add("metrics.txt", metrics, err)
	stacks, err := client.Profile(ctx, "goroutine", 1)
	add("goroutines.txt", stacks, err)
	for _, name := range []string{agent.LogPath(d), agent.LogPath(d) + ".1"} {
		end, err := endOf(name, reportLog)
		add(filepath.Base(name), end, err)
	}
	printed, err := endOf(daemonOutput(d), reportLog)
	add("crash.txt", crashIn(printed), err)
	return all
}

// crashIn extracts Go's crash reports. It drops the messages of daemons before and after,
// which may show values of the configuration.
func crashIn(printed []byte) (crashes []byte) {
	crashed := false
	for line := range bytes.Lines(printed) {
		switch text := string(line); {
		case strings.HasPrefix(text, "panic: "), strings.HasPrefix(text, "fatal error: "), strings.HasPrefix(text, "SIGQUIT: "):
			crashed = true
		case strings.HasPrefix(text, "tether: "):
			crashed = false
		}
		if crashed {
			crashes = append(crashes, line...)
		}
	}
	return crashes
}

// harmlessChecks removes quotes of the configuration file from the checks.
func harmlessChecks(e doctor.Examination) doctor.Examination {
	for i := range e.Checks {
		if c := &e.Checks[i]; c.Name == doctor.ConfigCheck && c.Result == doctor.Fail {
			c.Reason = "invalid, see config.toml"
		}
	}
	return e
}

// outline describes a terminal in a report, without its command and name.
type outline struct {
	ID       string      `json:"id"`
	Owner    string      `json:"owner"`
	Started  time.Time   `json:"started"`
	Exit     *vocab.Exit `json:"exit,omitempty"`
	Cols     int         `json:"cols"`
	Rows     int         `json:"rows"`
	Private  bool        `json:"private"`
	LentTo   []string    `json:"lent_to"`
	Bytes    int64       `json:"bytes"`
	Retained int64       `json:"retained"`
	Lost     int64       `json:"lost_bytes"`
	Attached int         `json:"attached"`
	Outlives bool        `json:"held"`
	Detects  bool        `json:"command_detection"`
}

func outlines(all []localapi.Terminal) []outline {
	out := []outline{}
	for _, t := range all {
		out = append(out, outline{
			ID: t.ID, Owner: t.Owner, Started: t.Started, Exit: t.Exit, Cols: t.Cols, Rows: t.Rows, Private: t.Private, LentTo: t.LentTo,
			Bytes: t.Bytes, Retained: t.Retained, Lost: t.Lost, Attached: t.Attached, Outlives: t.Outlives, Detects: t.CommandDetection,
		})
	}
	return out
}

// harmlessConfig returns the configuration without possible secrets, which are values of
// variables, commands, and patterns in rules. For an invalid file it lists only the
// numbers of the wrong lines, because the errors quote values.
func harmlessConfig(path string) ([]byte, error) {
	c, err := config.Load(path, fromEnv()...)
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		text := "# invalid:\n"
		for _, p := range wrong.Problems {
			where := fmt.Sprintf("line %d", p.Line)
			if p.From != "" {
				where = p.From
			}
			text += "# " + where + "\n"
		}
		return []byte(text), nil
	}
	if err != nil {
		return nil, err
	}
	c.Conceal("…")
	var b bytes.Buffer
	_, err = c.WriteTo(&b)
	return b.Bytes(), err
}

// endOf returns at most the last most bytes of a file, from the beginning of a line.
func endOf(name string, most int64) ([]byte, error) {
	f, err := secret.OpenRead(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-most)
	data, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return data, err
}
