package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
)

func killCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "kill ID…", Short: "end terminals and all their processes", Args: someArgs(1, -1, "the id or name of a terminal"),
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, refs []string) error {
			done := a.progress(c.Context(), "waiting for the processes to end")
			ended, errs := killAll(c.Context(), client, refs)
			done()
			for i, t := range ended {
				if errs[i] == nil {
					fmt.Fprintln(a.stdout, calledAs(refs[i], t), display.Ended(t))
				}
			}
			return errors.Join(errs...) // the first decides the exit status
		}),
	}
}

// killsAtOnce is how many terminals are ended concurrently: one that ignores the request
// to terminate takes seconds.
const killsAtOnce = 16

// killAll ends terminals; both results are in the order of refs.
func killAll(ctx context.Context, client *localclient.Client, refs []string) (ended []localapi.Terminal, errs []error) {
	ended, errs = make([]localapi.Terminal, len(refs)), make([]error, len(refs))
	var wg sync.WaitGroup
	slots := make(chan struct{}, killsAtOnce)
	for i, ref := range refs {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var err error
			if ended[i], err = client.Kill(ctx, ref); err != nil {
				errs[i] = about(ref, err)
			}
		})
	}
	wg.Wait()
	return ended, errs
}

// about adds the name of the terminal to an error.
func about(ref string, err error) error {
	if ref == "" || ref == "/" { // the error quotes it
		return err
	}
	return fmt.Errorf("%s: %w", display.Printable(ref, 40), err)
}

// calledAs returns how an answer calls a terminal: by the name if the request used it,
// else by the id.
func calledAs(ref string, t localapi.Terminal) string {
	if ref == t.Name {
		return t.Name
	}
	return t.ID
}
