package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/cmd/tether/internal/view"
	"tether/platform/tty"
	"tether/screen"
)

func readCommand(a *app) *cobra.Command {
	var o localclient.ReadOptions
	var raw, digest, shows bool
	color, run := colorAuto, ""
	c := &cobra.Command{
		Use: "read ID", Short: "print the output of a terminal, or of a kept run", Args: orRun(&run),
		RunE: func(c *cobra.Command, args []string) error {
			err := cmp.Or(checkRange(c, "--tail", int64(o.Lines), 0, maxLines), checkRange(c, "--command", int64(o.Command), 0, math.MaxInt32))
			if err != nil {
				return err
			}
			if o.Command > 0 && o.Lines > 0 {
				return usage(c, "--command cannot be combined with --tail")
			}
			if !slices.Contains(colorChoices, color) {
				return usage(c, "--color must be one of %s, not %q", strings.Join(colorChoices, ", "), color)
			}
			if raw {
				o.View = "raw"
			}
			if digest && (o.Follow || o.Lines > 0 || o.Command > 0) {
				return usage(c, "--digest is of all output: it cannot be combined with --tail, --command and --follow")
			}
			if shows && (digest || raw || o.Follow || o.Lines > 0 || o.Command > 0) {
				return usage(c, "--screen is what the terminal shows now: it cannot be combined with --tail, --command, --follow, --digest and --raw")
			}
			if run != "" && (shows || raw || o.Follow) {
				return usage(c, "a kept run is masked, and read as far as it has come: --run cannot be combined with --screen, --raw and --follow")
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			plain := !raw && (color == colorNever || color == colorAuto && !display.Colours(a.stdoutFile))
			if run != "" {
				return a.readRun(c.Context(), client, run, o, digest, plain)
			}
			if shows {
				return a.showScreen(c.Context(), client, args[0], plain)
			}
			if digest {
				d, err := client.Digest(c.Context(), args[0], raw)
				if err != nil {
					return about(args[0], err)
				}
				io.WriteString(a.stdout, d.Text)
				a.noteMasked(d.Masked)
				return nil
			}
			if o.Follow {
				t, err := client.Find(c.Context(), args[0])
				if err = cmp.Or(err, a.showsItself(t)); err != nil {
					return about(args[0], err)
				}
			}
			body, done, err := a.outputOf(c.Context(), client, args[0], o)
			if err != nil {
				return about(args[0], err)
			}
			defer done()
			err = a.show(body, plain, raw, o.Follow)
			a.noteMasked(body.Masked())
			if errors.Is(err, localclient.ErrDropped) {
				return &hinted{err, "the terminal may still be running; run this command again when the daemon is back"}
			}
			return err
		},
	}
	c.Flags().IntVar(&o.Lines, "tail", 0, "only the last `N` lines")
	c.Flags().IntVar(&o.Command, "command", 0, "only the output of command `N`; tether commands lists them")
	c.Flags().BoolVarP(&o.Follow, "follow", "f", false, "follow the output until the terminal exits")
	c.Flags().BoolVar(&digest, "digest", false, "sum all output up in 8 KB: the command, how it ended, every problem, the end; masks secrets unless --raw")
	c.Flags().BoolVar(&shows, "screen", false, "only what the terminal shows now, as of a full-screen program, however long ago it was drawn")
	c.Flags().BoolVar(&raw, "raw", false, "print every byte unchanged, also if the output is no terminal")
	c.Flags().StringVar(&color, "color", color, "`WHEN` to keep colours and other escape sequences: auto (if the output is a terminal), always or never")
	addRunFlag(c, &run)
	_ = c.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colorChoices, cobra.ShellCompDirectiveNoFileComp)) // cannot fail: the flag exists
	return c
}

// outputOf opens a terminal's output. The caller must call done.
func (a *app) outputOf(ctx context.Context, client *localclient.Client, ref string, o localclient.ReadOptions) (body *localclient.Output, done func(), err error) {
	stop, back := func() {}, (*localclient.Comeback)(nil)
	if o.Follow {
		client, stop = staying(ctx, client, a.notice, nil)
		var t localapi.Terminal
		t, err = client.Find(ctx, ref)
		ref, back = t.ID, a.comeback(t.ID)
	}
	if err == nil {
		body, err = client.Read(ctx, ref, o, back)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return body, func() { body.Close(); stop() }, nil
}

// comeback says how a command goes on when the daemon is replaced.
func (a *app) comeback(id string) *localclient.Comeback {
	return &localclient.Comeback{ID: id, Told: func(took time.Duration) {
		a.notice("reconnected after %s; the terminal kept running", display.Round(took))
	}}
}

// showScreen prints the rows of a terminal's screen.
func (a *app) showScreen(ctx context.Context, client *localclient.Client, ref string, plain bool) error {
	s, err := client.Screen(ctx, ref, !plain)
	if err != nil {
		return about(ref, err)
	}
	lines := s.Coloured
	if plain {
		lines = strings.Split(s.Text, "\n")
	}
	if s.Text != "" {
		io.WriteString(a.stdout, strings.Join(lines, "\n")+"\n")
	}
	a.noteMasked(s.Masked)
	if s.Truncated {
		a.notice("a part of the screen is not known: output before it is lost")
	}
	return nil
}

// Values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

var colorChoices = []string{colorAuto, colorAlways, colorNever}

// show copies a terminal's output: as plain text, or unchanged. At the person's own
// terminal it leaves out sequences that would act on that, unless raw, and restores the
// terminal's former state. If live, a line is shown before it is complete.
func (a *app) show(from io.Reader, plain, raw, live bool) error {
	if plain {
		text := &view.Plain{Out: a.stdout, Live: live}
		_, err := io.Copy(text, from)
		return errors.Join(err, text.Close())
	}
	if !tty.Is(a.stdoutFile) {
		_, err := io.Copy(a.stdout, from)
		return err
	}
	var m screen.Modes
	defer func() { a.stdout.Write(m.Restore()) }()
	own := io.MultiWriter(a.stdout, &m)
	if raw {
		_, err := io.Copy(own, from)
		return err
	}
	safe := view.NewSilent(own)
	_, err := io.Copy(safe, from)
	return errors.Join(err, safe.Close())
}

// orRun accepts a terminal as the only argument, or none if a run is given.
func orRun(run *string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("run") {
			if *run == "" {
				return usage(c, "--run needs the id or name of a run; tether runs lists them")
			}
			return someArgs(0, 0, "")(c, args)
		}
		return someArgs(1, 1, "the id or name of a terminal, or --run")(c, args)
	}
}

func addRunFlag(c *cobra.Command, run *string) {
	c.Flags().StringVar(run, "run", "", "of the kept `RUN` with this id, or the newest with this name, instead of a terminal")
}

// readRun prints the text of a kept run, or its digest.
func (a *app) readRun(ctx context.Context, client *localclient.Client, run string, o localclient.ReadOptions, digest, plain bool) error {
	if digest {
		d, err := client.RunDigest(ctx, run)
		if err != nil {
			return about(run, err)
		}
		io.WriteString(a.stdout, d.Text)
		return nil
	}
	body, err := client.RunText(ctx, run, o.Lines, o.Command)
	if err != nil {
		return about(run, err)
	}
	defer body.Close()
	return a.show(body, plain, false, false)
}
