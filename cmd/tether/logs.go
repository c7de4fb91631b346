package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"tether/agent"
	"tether/cmd/tether/internal/display"
	"tether/platform/dirs"
)

func logsCommand(a *app) *cobra.Command {
	var follow, asJSON bool
	var lines int
	var level string
	c := &cobra.Command{
		Use: "logs", Short: "show the daemon's log", Args: noArgs,
		Long: `show the daemon's log. It contains no terminal output or input, and no secrets.

A log file grows up to 5 MiB and then becomes daemon.log.1; tether status --json prints
the path. --json prints the lines of the file, one JSON object each. --set-level
changes the log level until the daemon ends; the configured daemon.log_level applies
again at the next start.`,
		Example: "  tether logs -f\n  tether logs --set-level debug -f\n  tether logs -n 1000 --json | jq 'select(.level == \"error\")'",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkRange(c, "--lines", int64(lines), 1, maxLines); err != nil {
				return err
			}
			d, err := dirs.Get()
			if err != nil {
				return err
			}
			if level != "" {
				client, _, err := a.client()
				if err != nil {
					return err
				}
				set, err := client.LogLevel(c.Context(), level)
				if err != nil {
					return err
				}
				a.notice("the log level is %s until the daemon ends", set.Level)
				if !follow && !c.Flags().Changed("lines") {
					return nil
				}
			}
			var w io.Writer = a.stdout
			if !asJSON {
				w = newLogText(a.stdout, display.Colours(a.stdoutFile))
			}
			return tail(c.Context(), w, agent.LogPath(d), lines, follow)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new lines until interrupted")
	c.Flags().IntVarP(&lines, "lines", "n", 50, "the last `N` lines")
	c.Flags().BoolVar(&asJSON, "json", false, "print the lines of the file: JSON")
	c.Flags().StringVar(&level, "set-level", "", "set the daemon's log `LEVEL`: debug, info, warn or error")
	return c
}

// logText formats lines of JSON for people. Lines that are no JSON objects stay as they
// are.
type logText struct {
	out     io.Writer
	console zerolog.ConsoleWriter // to text
	text    bytes.Buffer
	rest    []byte // the beginning of a line
}

// newLogText returns a writer to out. All that a line contains is made harmless to a
// terminal.
func newLogText(out io.Writer, colours bool) *logText {
	text := func(v any) string {
		if v == nil {
			return ""
		}
		return display.Printable(fmt.Sprintf("%s", v), 0)
	}
	name := func(v any) string { return text(v) + "=" }
	l := &logText{out: out}
	l.console = zerolog.ConsoleWriter{
		Out: &l.text, FormatMessage: text, FormatCaller: text, FormatFieldName: name, FormatFieldValue: text, FormatErrFieldName: name, FormatErrFieldValue: text,
		FormatTimestamp: func(v any) string {
			if at, err := time.Parse(time.RFC3339, text(v)); err == nil {
				return at.Local().Format(time.DateTime)
			}
			return text(v)
		},
		FormatLevel: func(v any) string {
			level := text(v)
			padded := fmt.Sprintf("%-5s", level)
			if colour := map[string]string{"warn": "33", "error": "31", "debug": "2"}[level]; colours && colour != "" {
				return "\x1b[" + colour + "m" + padded + "\x1b[0m"
			}
			return padded
		},
	}
	return l
}

// maxLogLine bounds an incomplete line, in bytes; a longer one is printed in parts.
const maxLogLine = 256 << 10

// Write implements io.Writer; pieces may be of any size.
func (l *logText) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole && len(line) < maxLogLine {
			return len(p), nil
		}
		if _, err := l.console.Write(line); err != nil { // no JSON
			fmt.Fprintln(&l.text, display.Printable(string(line), 0))
		}
		if _, err := l.text.WriteTo(l.out); err != nil {
			return 0, err
		}
		l.rest = append([]byte(nil), rest...)
	}
}
