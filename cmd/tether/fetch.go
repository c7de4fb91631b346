package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/fetch"
	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
	"tether/platform/tty"
	"tether/problems"
)

func fetchCommand(a *app) *cobra.Command {
	var r localapi.FetchRequest
	var headers []string
	var asJSON, include, quiet bool
	c := &cobra.Command{
		Use: "fetch ID [PATH]", Short: "fetch a page of the server that runs in a terminal", Args: someArgs(1, 2, "a terminal and a path"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				r.Path = args[1]
			}
			r.Headers = map[string]string{}
			for _, h := range headers {
				name, value, ok := strings.Cut(h, ":")
				if !ok {
					return usage(c, "--header %q must be NAME: VALUE", h)
				}
				r.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			defer a.progress(c.Context(), "waiting for the server")()
			page, err := client.Fetch(c.Context(), args[0], r)
			switch {
			case err != nil:
				return about(args[0], err)
			case asJSON:
				return a.printJSON(page)
			}
			a.printFetched(page, include, quiet)
			if page.Status >= http.StatusBadRequest {
				return exitCode(localapi.ExitFailure)
			}
			return nil
		},
	}
	c.Flags().IntVar(&r.Port, "port", 0, "the `PORT`, if programs of the terminal listen on several")
	c.Flags().StringVar(&r.Method, "method", "", "GET, HEAD or OPTIONS (`METHOD`)")
	c.Flags().StringArrayVarP(&headers, "header", "H", nil, "send this header; several times (`NAME: VALUE`)")
	c.Flags().BoolVar(&r.Readable, "readable", false, "reduce HTML to its text, links and form fields")
	c.Flags().BoolVarP(&include, "include", "i", false, "print the status and the headers first")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not print what the terminal printed meanwhile")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printFetched(page localapi.Fetched, include, quiet bool) {
	if include {
		fmt.Fprintf(a.stdout, "%d %s\n", page.Status, http.StatusText(page.Status))
		for _, h := range page.Headers {
			fmt.Fprintf(a.stdout, "%s: %s\n", display.Printable(h.Name, 100), display.Printable(h.Value, 1000))
		}
		fmt.Fprintln(a.stdout)
	}
	a.printBody(page.Body)
	switch {
	case page.RedirectsTo != "":
		a.notice("the server redirects to %s, which is another one", display.Printable(page.RedirectsTo, 200))
	case page.Status >= http.StatusBadRequest && !include:
		a.notice("the server answered %d %s", page.Status, http.StatusText(page.Status))
	}
	if page.Trouble != "" {
		a.notice("%s", display.Printable(page.Trouble, 200))
	} else if left := page.Size - int64(len(page.Body)); left > 0 && len(page.Body) == fetch.MaxBody {
		a.notice("%d bytes more are left out", left)
	}
	if quiet || page.Printed == "" {
		return
	}
	a.notice("printed meanwhile:")
	fmt.Fprint(a.stderr, display.PrintableLines(strings.TrimSuffix(page.Printed, "\n")+"\n"))
	for _, p := range page.Problems {
		if at := problems.Place(p.File, p.Line, p.Column); at != "" {
			a.notice("%s: %s: %s", display.Printable(at, 200), p.Severity, display.Printable(p.Message, 300))
		}
	}
}

// printBody writes a body as it is, but at a terminal without what would act on it.
func (a *app) printBody(body []byte) {
	if len(body) == 0 {
		return
	}
	if !tty.Is(a.stdoutFile) {
		a.stdout.Write(body)
		return
	}
	fmt.Fprint(a.stdout, display.PrintableLines(strings.TrimSuffix(string(body), "\n")+"\n"))
}
