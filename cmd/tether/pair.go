package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/platform/tty"
)

func pairCommand(a *app) *cobra.Command {
	var r localapi.PairRequest
	var token tokenSource
	c := &cobra.Command{
		Use: "pair URL [URL…]", Short: "pair with an agent host, to lend it terminals", Args: someArgs(1, 16, "the host's URL"),
		Long: `pair with an agent host, to lend it terminals.

Hosts that support it, such as tether-host, are paired by keys: this command shows a
code, and an administrator of the host compares and approves it there. This machine
then logs in with a key that never leaves it. A pairing token of the host makes the
approval unnecessary. Other hosts use a token; this command asks for it.

Tokens are read from --token-file (- is standard input), never from the command line.
If the host refuses the token, or the token may not lend, nothing changes. Pairing
again with the same URL replaces the token and lends your shared terminals again; if
the host accepts this machine's key, nothing changes. tether unpair makes the host
forget this machine's key.

A host of several nodes has several URLs. The first is paired with; afterwards any of
them serves, and another one is tried when one does not answer.`,
		Example: `  tether pair wss://host.example
  tether pair --token-file - wss://host.example < token
  tether pair wss://one.host.example wss://two.host.example
  tether pair --without-token ws://127.0.0.1:9187`,
		RunE: func(c *cobra.Command, args []string) error {
			for _, url := range args {
				if err := refuseToken(c, url); err != nil {
					return err
				}
			}
			r.URL, r.Also = args[0], args[1:]
			h, err := a.pair(c, r, token)
			if err != nil {
				return err
			}
			a.paired(h)
			return nil
		},
	}
	f := c.Flags()
	token.flags(c)
	f.StringVar(&r.Name, "name", "", "a `NAME` for the host; default: taken from the URL")
	f.StringVar(&r.Pin, "pin", "", "trust the host's certificate by the `HASH` of its public key, sha256/…, instead of the system's certificate authorities")
	f.StringVar(&r.Store, "store", "", "`WHERE` to keep secrets: keyring, or file (readable only by you); the first pairing decides")
	f.BoolVar(&r.Default, "default", false, "make it the default host; the first paired host always is")
	f.BoolVar(&r.AssumeClientTerminals, "assume-client-terminals", false, "pair even if the host does not announce support for client terminals")
	f.StringVar(&r.OnDispose, "on-dispose", "auto", "`WHAT` to do when the host disposes of a terminal: kill, unlend, or auto (unlend while you are attached, else kill)")
	return c
}

// pair pairs by keys if no token was given and the host supports that, else by a token.
func (a *app) pair(c *cobra.Command, r localapi.PairRequest, token tokenSource) (localapi.HostStatus, error) {
	given := token != (tokenSource{})
	var err error
	if given {
		if r.Token, err = token.read(a, c); err != nil {
			return localapi.HostStatus{}, err
		}
	}
	client, err := a.ensured(c)
	if err != nil {
		return localapi.HostStatus{}, err
	}
	if !given {
		done := a.progress(c.Context(), "contacting the host")
		offer, err := client.Offer(c.Context(), r)
		done()
		if err != nil {
			return localapi.HostStatus{}, err
		}
		switch {
		case offer.Paired != nil:
			a.notice("already paired; the host accepts this machine")
			return *offer.Paired, nil
		case offer.ID != "":
			return a.compare(c, client, r.URL, offer)
		}
		if r.Token, err = token.read(a, c); err != nil {
			return localapi.HostStatus{}, err
		}
	}
	done := a.progress(c.Context(), "contacting the host")
	h, err := client.Pair(c.Context(), r)
	done()
	if err == nil {
		err = a.showStore(c, client)
	}
	return h, err
}

// compare shows the code and waits until the person, who is logged in at the host, or an
// administrator has approved it there.
func (a *app) compare(c *cobra.Command, client *localclient.Client, url string, o localapi.PairOffer) (localapi.HostStatus, error) {
	fmt.Fprintf(a.stdout, "host key     %s\nthis machine %s\ncode         %s\n", display.Printable(o.HostKey, 80), display.Printable(o.DeviceKey, 80), display.Printable(o.Code, 20))
	own, err := a.approveOwn(c, url, o.Code)
	if err != nil {
		a.notice("your login at the host does not approve this machine: %v", err)
	}
	if own {
		return a.finishPairing(c, client, o)
	}
	a.notice("ask the host's administrator to run: tether-host approve %s", display.Printable(o.Code, 20))
	a.notice("waiting up to %d minutes; Ctrl-C cancels. To pair with a token instead: --token-file", o.ExpiresMs/60_000)
	return a.finishPairing(c, client, o)
}

// finishPairing waits until the host has let this machine in.
func (a *app) finishPairing(c *cobra.Command, client *localclient.Client, o localapi.PairOffer) (localapi.HostStatus, error) {
	h, err := client.Finish(c.Context(), o.ID)
	if err == nil {
		err = a.showStore(c, client)
	}
	return h, err
}

// showStore tells the person where secrets are kept, if not in the keyring. tether status
// says why.
func (a *app) showStore(c *cobra.Command, client *localclient.Client) error {
	s, err := client.Status(c.Context())
	if err == nil && s.Secrets != nil && s.Secrets.Store == "file" {
		a.notice("secrets are in %s (0600)", display.Printable(s.Secrets.Path, 0))
	}
	return err
}

func (a *app) paired(h localapi.HostStatus) {
	fmt.Fprintf(a.stdout, "paired with %s at %s\n", display.Printable(h.Name, 0), display.Printable(h.URL, 0))
	if h.Default {
		a.notice("Next: tether run -- CMD")
	} else {
		a.notice("Next: tether run --host %s -- CMD", h.Name)
	}
}

func unpairCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "unpair NAME", Short: "stop sharing with a host, and forget it", Args: someArgs(1, 1, "the host's name"),
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, args []string) error {
			done := a.progress(c.Context(), "waiting for the host to forget this machine")
			u, err := client.Unpair(c.Context(), args[0])
			done()
			if err != nil {
				return err
			}
			if u.Keeps != "" {
				a.notice("the host was not informed and may still accept this machine's key; ask its administrator to run: tether-host token revoke NAME (%s)", display.Printable(u.Keeps, 200))
			}
			if u.Withdrawn > 0 {
				a.notice("the host is offline and may still show what it has of %s, until %s at the latest", display.Count(u.Withdrawn, "terminal"), display.Clock(u.KeptUntil))
			}
			fmt.Fprintln(a.stdout, "forgot", display.Printable(args[0], 0))
			return nil
		}),
	}
}

// refuseToken refuses a URL that holds a token: every program on the machine can read
// command lines, and shells keep them.
func refuseToken(c *cobra.Command, text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return usage(c, "invalid URL") // without the URL, which may hold a token
	}
	if u.User != nil || u.Query().Has("tkn") || strings.Contains(u.Fragment, "tkn=") {
		return &usageError{message: c.Name() + ": a token on the command line can be read by other programs",
			hint: "leave ?tkn=… out of the URL; give the token when asked, or with --token-file"}
	}
	return nil
}

// tokenSource says where the token comes from.
type tokenSource struct {
	file string
	none bool
}

func (t *tokenSource) flags(c *cobra.Command) {
	c.Flags().StringVar(&t.file, "token-file", "", "read the token from `FILE`; - is standard input")
	c.Flags().BoolVar(&t.none, "without-token", false, "the host needs no token")
}

// maxToken bounds the number of bytes that are read from a token file.
const maxToken = 4 << 10

func (t *tokenSource) read(a *app, c *cobra.Command) (string, error) {
	switch {
	case t.none && t.file != "":
		return "", usage(c, "--without-token and --token-file cannot be combined")
	case t.none:
		return "", nil
	case t.file == "-":
		return readSecret(a.stdin, "the token file")
	case t.file != "":
		f, err := os.Open(t.file)
		if err != nil {
			return "", fmt.Errorf("token file: %w", err)
		}
		defer f.Close()
		return readSecret(f, "the token file")
	case !tty.Is(a.stdin):
		return "", usage(c, "cannot ask for the token without a terminal; give --token-file or --without-token")
	}
	fmt.Fprint(a.stderr, "token (empty if the host needs none): ")
	text, err := tty.ReadSecret(c.Context(), a.stdin)
	fmt.Fprintln(a.stderr)
	return strings.TrimSpace(text), err
}

// readSecret reads all of from, which what names.
func readSecret(from io.Reader, what string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	text := strings.TrimSpace(string(data))
	if text == "" || len(data) > maxToken {
		return "", fmt.Errorf("%s is empty or longer than 4 KiB", what)
	}
	return text, nil
}
