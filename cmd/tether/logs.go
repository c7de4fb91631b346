package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

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
				w = &logText{out: a.stdout, colours: display.Colours(a.stdoutFile)}
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

// logText formats lines of JSON for people: time, level, message, then the other fields by name.
type logText struct {
	out     io.Writer
	colours bool
	rest    []byte // the beginning of a line
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
		if _, err := io.WriteString(l.out, l.line(line)+"\n"); err != nil {
			return 0, err
		}
		l.rest = append([]byte(nil), rest...)
	}
}

// line formats one line. A line that is no JSON object stays unchanged.
func (l *logText) line(raw []byte) string {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		return display.Printable(string(raw), 0)
	}
	when, _ := fields["time"].(string)
	if at, err := time.Parse(time.RFC3339, when); err == nil {
		when = at.Local().Format(time.DateTime)
	}
	level, _ := fields["level"].(string)
	message, _ := fields["message"].(string)
	text := display.Printable(when, 40) + " " + l.coloured(level) + " " + display.Printable(message, 0)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != "time" && name != "level" && name != "message" {
			text += " " + display.Printable(name+"="+logValue(fields[name]), 0)
		}
	}
	return text
}

// coloured pads a level to a common width and colours it.
func (l *logText) coloured(level string) string {
	colour := map[string]string{"warn": "33", "error": "31", "debug": "2"}[level]
	text := fmt.Sprintf("%-5s", display.Printable(level, 10))
	if !l.colours || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// logValue quotes a value that would be ambiguous in the line.
func logValue(v any) string {
	s, ok := v.(string)
	if !ok {
		data, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		s = string(data)
	}
	if s == "" || strings.ContainsAny(s, " \"=") {
		return fmt.Sprintf("%q", s)
	}
	return s
}
