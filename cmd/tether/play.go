package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tether/cmd/tether/internal/view"
	"tether/internal/asciicast"
	"tether/internal/retry"
	"tether/platform/tty"
	"tether/screen"
)

func playCommand(a *app) *cobra.Command {
	p := player{speed: 1}
	c := &cobra.Command{
		Use: "play FILE", Short: "play a recording of a terminal", Args: someArgs(1, 1, "a file, or - for standard input"),
		Long: `play a recording of a terminal: an asciicast of version 2 or 3, from tether record
or asciinema. Ctrl-C stops it and restores your terminal. If the output is not a
terminal, there are no pauses.`,
		Example: "  tether play web.cast\n  tether play --speed 2 --idle-limit 1s web.cast",
		RunE: func(c *cobra.Command, args []string) error {
			if !(p.speed >= 0.001 && p.speed <= 1000) { // also if it is no number
				return usage(c, "--speed must be 0.001 to 1000")
			}
			if c.Flags().Changed("idle-limit") && p.idle <= 0 {
				return usage(c, "--idle-limit must be more than 0")
			}
			in := io.Reader(a.stdin)
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			return a.play(c.Context(), in, p)
		},
	}
	c.Flags().Float64Var(&p.speed, "speed", 1, "play it `N` times as fast")
	c.Flags().DurationVar(&p.idle, "idle-limit", 0, "shorten pauses to this `TIME`, such as 1s")
	return c
}

// player holds how a recording is played.
type player struct {
	speed float64
	idle  time.Duration // bounds pauses without output; 0 means that pauses are as they were
}

func (a *app) play(ctx context.Context, in io.Reader, p player) error {
	r, err := asciicast.NewReader(in)
	if err != nil {
		return &hinted{err, "record one with tether record or asciinema"}
	}
	paced := tty.Is(a.stdoutFile)
	var m screen.Modes
	var shown io.Writer = a.stdout
	if paced {
		shown = view.NewSafe(io.MultiWriter(a.stdout, &m)) // the recording may be another person's
		if cols, rows := a.size(); int(cols) < r.Header.Cols || int(rows) < r.Header.Rows {
			a.notice("recorded at %dx%d, your window is %dx%d: lines may wrap", r.Header.Cols, r.Header.Rows, cols, rows)
		}
		defer func() { a.stdout.Write(m.Restore()) }()
	}
	var last time.Duration
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if paced && !p.pause(ctx, e.At-last) {
			return ctx.Err()
		}
		last = e.At
		if e.Kind != asciicast.Output {
			continue
		}
		if _, err := io.WriteString(shown, e.Data); err != nil {
			return err
		}
	}
}

// pause waits for as long as the person wants. It returns false if they want to stop.
func (p player) pause(ctx context.Context, d time.Duration) bool {
	if p.idle > 0 {
		d = min(d, p.idle)
	}
	return retry.Wait(ctx, time.Duration(float64(d)/p.speed))
}
