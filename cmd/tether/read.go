package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"tether/agent/local"
	"tether/platform/tty"
)

func readCommand(a *app) *cobra.Command {
	var o local.ReadOptions
	var raw bool
	c := &cobra.Command{
		Use: "read ID", Short: "print what a terminal has printed", Args: someArgs(1, 1, "the id or name of a terminal"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.Lines < 0 {
				return usage(c, "--tail %d is less than 0", o.Lines)
			}
			if o.Command < 0 || o.Command > 0 && o.Lines > 0 {
				return usage(c, "--command takes the number of one command, and no --tail")
			}
			if raw {
				o.View = "raw"
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			body, err := client.Read(c.Context(), args[0], o)
			if err != nil {
				return about(args[0], err)
			}
			defer body.Close()
			if err = a.show(body); errors.Is(err, local.ErrDropped) {
				return &hinted{err, "the terminal may run on; the same command reads on when there is a daemon"}
			}
			return err
		},
	}
	c.Flags().IntVar(&o.Lines, "tail", 0, "only the last `N` lines")
	c.Flags().IntVar(&o.Command, "command", 0, "only what command `N` printed; tether commands lists them")
	c.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on until the terminal exits")
	c.Flags().BoolVar(&raw, "raw", false, "every byte as it was printed")
	return c
}

// show copies what a terminal printed and leaves the person's own terminal as it was.
func (a *app) show(from io.Reader) error {
	if !tty.Is(a.stdout) {
		_, err := io.Copy(a.stdout, from)
		return err
	}
	var m modes
	defer func() { a.stdout.Write(m.restore()) }()
	_, err := io.Copy(io.MultiWriter(a.stdout, &m), from)
	return err
}
