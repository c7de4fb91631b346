package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"tether/ahp"
	"tether/host/cluster"
	"tether/internal/flagerror"
	"tether/internal/manual"
	"tether/internal/version"
)

// settings has the flags.
type settings struct {
	listen       string
	token        string
	tokenFile    string
	withoutToken bool
	origins      []string
	noHSTS       bool
	grace, park  time.Duration
	drain        time.Duration
	scrollback   int
	shells       bool
	shellGrace   time.Duration
	sessions     bool
	agentShells  bool
	logLevel     string

	tokens    string // file of tokens
	cert, key string // files, PEM
	plaintext bool
	publicURL string
	// previewDomain is the name below which lent ports are shown, as it was given.
	previewDomain string
	auditLog      string
	metrics       string
	perMachine    int // terminals
	most          int // connections
	memory        int64
	proxies       []string
	oidc          oidcSettings

	cluster clusterSettings
	node    *cluster.Node // nil without --nats; set by serve

	shares       bool
	webhooks     bool
	push         bool
	webhookAllow []string
}

func newRoot(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "tether-host",
		Short: "an agent host, to which terminals are lent",
		Long: `tether-host is an agent host (AHP): machines lend it terminals, others watch them.

  tether-host                      on this machine, with a new token for this run
  tether-host --token-file FILE    with a token that stays the same
  tether-host approve CODE         let in a machine that has asked with tether pair
  tether-host token create NAME    a token for one machine, person or agent
  tether-host people on            show everybody only what is theirs or shared with them
  tether-host link                 a link to a running host's page
  tether-host shells               the shells of a running host, also those whose client is gone
  tether-host mcp --url URL        an MCP server for agents: the terminals at the host

The token of a run, of --token and of --token-file allows everything, also shells here.

When it accepts connections it prints one line on standard output:
READY ws://ADDRESS. It runs until it is interrupted.`,
		Version:      version.Text(),
		SilenceUsage: true, SilenceErrors: true,
		SuggestionsMinimumDistance: 2, Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error {
			return serve(c.Context(), &s, c.Flags().Changed("shells"), stdout, stderr)
		},
	}
	c.SetOut(stdout)
	c.SetErr(stderr)
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{flagerror.Text(err), "see " + c.CommandPath() + " --help"}
	})
	c.CompletionOptions.HiddenDefaultCmd = true
	book := manual.Book{Version: version.Text(), Also: []string{"tether", "tether-hosts"}}.Command()
	book.Args = exactly(1, "a directory")
	c.AddCommand(book)
	c.SetHelpCommand(&cobra.Command{Hidden: true})
	c.AddCommand(pendingCommand(stdout), approveCommand(stdout), tokenCommand(stdout), mcpCommand(stdin, stdout), eventsCommand(stdout, stderr), linkCommand(stdin, stdout), shellsCommand(stdin, stdout), terminalsCommand(stdin, stdout),
		peopleCommand(stdout), groupCommand(stdout), grantCommand(stdout), grantsCommand(stdout), conformCommand(stdin, stdout), auditCommand(stdout))
	addExamples(c)
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&s.listen, "listen", "127.0.0.1:9187", "`ADDRESS` to listen on; port 0 takes any free one")
	f.StringVar(&s.tokenFile, "token-file", "", "read the token from `FILE`; a missing file is made with a new token")
	f.StringVar(&s.token, "token", "", "the token itself; all users of this machine can see it in the list of processes: prefer --token-file")
	f.BoolVar(&s.withoutToken, "without-token", false, "let everyone on this machine connect; only on a loopback address")
	f.StringArrayVar(&s.origins, "allow-origin", nil, "`HOST` of web pages that may connect, besides this host's own; by https alone, where the host is reached by https")
	f.DurationVar(&s.grace, "grace", 30*time.Second, "how long terminals outlive the connection of a machine that can resume them")
	f.DurationVar(&s.park, "park", 24*time.Hour, "keep terminals for agents and the page for at most this long while their machine is away, if it allows that; 0s: never")
	f.DurationVar(&s.drain, "drain", 5*time.Second, "how long clients may take to read pending data when the host stops")
	f.IntVar(&s.scrollback, "scrollback", 1<<20, "`BYTES` of text kept per terminal")
	f.BoolVar(&s.shells, "shells", true, "run shells on this machine for clients that ask for them; off by default with --without-token")
	f.DurationVar(&s.shellGrace, "shell-grace", 0, "end shells whose client has been away this long, if only the shell is in the foreground; 0s: never")
	f.BoolVar(&s.sessions, "sessions", false, "allow sessions, in which machines offer tools and operators call them")
	f.BoolVar(&s.agentShells, "agent-shells", false, "let operators run commands in shells on this machine, as your user; needs --sessions and --shells")
	tokensFlag(f, &s.tokens)
	f.StringVar(&s.cert, "tls-cert", "", "`FILE` with the certificate and its chain, PEM; read again when it changes")
	f.StringVar(&s.key, "tls-key", "", "`FILE` with the certificate's key, PEM")
	f.BoolVar(&s.plaintext, "plaintext", false, "listen without TLS on other addresses than loopback: behind a TLS proxy, or in a network you trust")
	f.StringVar(&s.publicURL, "public-url", "", "https `URL` of the page for people, if it differs from the listen address")
	f.StringVar(&s.previewDomain, "preview-domain", "", "show lent ports in browsers at names below `NAME`[:PORT], for which there is a wildcard certificate; on loopback, below localhost without this flag")
	f.BoolVar(&s.noHSTS, "no-hsts", false, "do not tell browsers to use https alone for the name in --public-url, at all its ports")
	f.StringVar(&s.auditLog, "audit-log", "", "log to `FILE` who connected, created, watched and was refused; never what terminals print")
	f.StringVar(&s.metrics, "metrics", "", "serve metrics for Prometheus at http://`ADDRESS`/metrics, without a token; they are only numbers. Port 0 takes any free one, which is printed")
	f.IntVar(&s.most, "max-connections", 4096, "maximum `NUMBER` of connections")
	f.IntVar(&s.perMachine, "max-terminals", 256, "maximum `NUMBER` of terminals of one client")
	f.Int64Var(&s.memory, "max-memory", 1<<30, "`BYTES` of text kept of all terminals together; the largest are trimmed first")
	f.StringArrayVar(&s.proxies, "trusted-proxy", nil, "`ADDRESS` or network of a proxy whose X-Forwarded-For is trusted")
	s.oidc.flags(f)
	s.cluster.flags(f)
	f.BoolVar(&s.shares, "shares", true, "let machines share a terminal with guests by links")
	f.BoolVar(&s.webhooks, "webhooks", false, "let agents with a token have events sent to https URLs that they name")
	f.StringArrayVar(&s.webhookAllow, "webhook-allow", nil, "a non-public `ADDRESS` or network to which webhooks and notifications may go; may be repeated")
	f.BoolVar(&s.push, "push", false, "let people have their browsers notified, through the push services of the browsers' vendors")
	f.StringVar(&s.logLevel, "log-level", "warn", "`LEVEL` of the log on standard error: trace, debug, info, warn, error, disabled")
	return c
}

// logger writes entries of at least the configured level to stderr.
func (s *settings) logger(stderr io.Writer) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(s.logLevel)
	if err != nil || s.logLevel == "" {
		return zerolog.Nop(), &usageError{fmt.Sprintf("--log-level: unknown level %q", s.logLevel), "use debug, info, warn or error"}
	}
	return zerolog.New(stderr).Level(level).With().Timestamp().Logger(), nil
}

// check checks each flag, without opening anything.
func (s *settings) check() error {
	const (
		maxScrollback = 1 << 30 // bytes
		maxMemory     = 1 << 40 // bytes
	)
	switch {
	case s.grace <= 0 || s.grace > time.Hour:
		return &usageError{fmt.Sprintf("--grace is %v", s.grace), "use more than 0 and at most 1h"}
	case s.park < 0 || s.park > ahp.MaxPark:
		return &usageError{fmt.Sprintf("--park is %v", s.park), "use 0s for never, or at most 720h"}
	case s.shellGrace != 0 && (s.shellGrace < time.Second || s.shellGrace > ahp.MaxPark):
		return &usageError{fmt.Sprintf("--shell-grace is %v", s.shellGrace), "use 1s to 720h, or 0s for never"}
	case s.drain < 0 || s.drain > time.Hour:
		return &usageError{fmt.Sprintf("--drain is %v", s.drain), "use 0s to 1h"}
	case s.most < 1 || s.most > 1<<20:
		return &usageError{fmt.Sprintf("--max-connections is %d", s.most), "use 1 to 1048576"}
	case s.perMachine < 1 || s.perMachine > 1<<16:
		return &usageError{fmt.Sprintf("--max-terminals is %d", s.perMachine), "use 1 to 65536"}
	case s.memory < 1<<20 || s.memory > maxMemory:
		return &usageError{fmt.Sprintf("--max-memory is %d", s.memory), fmt.Sprintf("use 1048576 to %d bytes", int64(maxMemory))}
	case (s.cert == "") != (s.key == ""):
		return &usageError{"--tls-cert and --tls-key must be given together", "give both, or neither"}
	case s.agentShells && !(s.sessions && s.shells):
		return &usageError{"--agent-shells needs --sessions and --shells", "add --sessions, and leave out --shells=false"}
	case s.webhooks && s.withoutToken:
		return &usageError{"--webhooks and --without-token cannot be combined", "webhooks are for agents with a token: omit --without-token"}
	case s.push && s.withoutToken:
		return &usageError{"--push and --without-token cannot be combined", "a browser is notified while its login lasts: omit --without-token"}
	case !s.webhooks && !s.push && len(s.webhookAllow) > 0:
		return &usageError{"--webhook-allow needs --webhooks or --push", "add --webhooks"}
	case s.scrollback < 1<<10 || s.scrollback > maxScrollback:
		return &usageError{fmt.Sprintf("--scrollback is %d", s.scrollback), fmt.Sprintf("use 1024 to %d bytes", maxScrollback)}
	}
	if err := s.cluster.check(s.withoutToken); err != nil {
		return err
	}
	return s.oidc.check(s.publicURL, s.withoutToken)
}

// homeDir returns the directory in which shells start by default.
func homeDir() string {
	if dir, err := os.UserHomeDir(); err == nil {
		return dir
	}
	return "/"
}

// printJSON writes v as one indented document.
func printJSON(stdout io.Writer, v any) error {
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// newTable begins a table with the names of its columns, separated by tabs. The caller
// flushes it.
func newTable(stdout io.Writer, columns string) *tabwriter.Writer {
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, columns)
	return w
}

// oneLine returns text from a host as one line, for a table.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }
