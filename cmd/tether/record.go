package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/internal/asciicast"
)

func recordCommand(a *app) *cobra.Command {
	var output string
	var version int
	var all bool
	c := &cobra.Command{
		Use: "record ID", Short: "record the output of a terminal as an asciicast", Args: someArgs(1, 1, "the id or name of a terminal"),
		Long: `record the output of a terminal, with its timing, until it exits or Ctrl-C. The file is
an asciicast: tether play and asciinema can play it. It contains all output, including
secrets; only you may read it. It contains input only as far as the terminal echoes it.
--all starts with the earlier output that is still kept, without its timing.`,
		Example: "  tether record web --output web.cast\n  tether record web --output - | asciinema play -",
		RunE: func(c *cobra.Command, args []string) error {
			if version != 2 && version != 3 {
				return usage(c, "--format must be 2 or 3")
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			client, stop := staying(c.Context(), client, a.notice, nil)
			defer stop()
			t, err := client.Find(c.Context(), args[0])
			if err != nil {
				return about(args[0], err)
			}
			if output == "-" {
				return a.record(c.Context(), client, t, a.stdout, version, all)
			}
			if output == "" {
				output = t.ID + "-" + time.Now().Format("20060102-150405") + ".cast"
			}
			out, err := createNew(output)
			if err != nil {
				return err
			}
			a.notice("recording %s to %s; Ctrl-C stops", t.ID, output)
			return errors.Join(a.record(c.Context(), client, t, out, version, all), out.Close())
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write to `FILE`, which must not exist; - is standard output")
	c.Flags().IntVar(&version, "format", 3, "the `VERSION` of the format, 2 or 3")
	c.Flags().BoolVar(&all, "all", false, "start with the earlier output that is still kept")
	return c
}

// record writes the recording until the terminal has exited or ctx ends. The end of ctx
// is not an error.
func (a *app) record(ctx context.Context, client *localclient.Client, t localapi.Terminal, out io.Writer, version int, all bool) error {
	o := localclient.ReadOptions{Follow: true, Marks: true, From: t.Bytes}
	if all {
		o.From = 0
	}
	began := time.Now()
	w, err := asciicast.NewWriter(out, asciicast.Header{Version: version, Cols: t.Cols, Rows: t.Rows, Started: began, Title: t.Title, Term: os.Getenv("TERM")})
	if err != nil {
		return err
	}
	in, err := client.Read(ctx, t.ID, o, a.comeback(t.ID))
	if ctx.Err() != nil {
		return nil // Ctrl-C already: an empty recording
	}
	if err != nil {
		return about(t.ID, err)
	}
	defer in.Close()
	cols, rows := t.Cols, t.Rows
	for err == nil {
		var m localclient.Message
		if m, err = in.Next(); err != nil {
			break
		}
		at := time.Since(began)
		switch c := m.Control; {
		case c == nil:
			err = w.Write(asciicast.Event{At: at, Kind: asciicast.Output, Data: string(m.Data)})
		case c.Type == localapi.ControlResized:
			if int(c.Cols) == cols && int(c.Rows) == rows {
				continue // it is told again after a comeback
			}
			cols, rows = int(c.Cols), int(c.Rows)
			err = w.Write(asciicast.Event{At: at, Kind: asciicast.Resize, Data: fmt.Sprintf("%dx%d", cols, rows)})
		case c.Type == localapi.ControlLagged:
			a.notice("%s skipped: the file was not written fast enough", display.Size(c.Lost))
		case c.Type == localapi.ControlExit:
			return w.Write(asciicast.Event{At: at, Kind: asciicast.Exit, Data: fmt.Sprint(c.Code)})
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
