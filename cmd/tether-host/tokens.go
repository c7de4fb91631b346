package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tether/host"
	"tether/host/access"
	"tether/host/rights"
	"tether/platform/dirs"
)

// flags is a set of flags to which a flag can be added.
type flags interface {
	StringVar(p *string, name, value, usage string)
}

func tokensFlag(f flags, path *string) {
	f.StringVar(path, "tokens", "", "the `FILE` that holds the tokens; default: the file in the state directory")
}

// tokensPath returns the path of the tokens' file.
func tokensPath(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	d, err := dirs.Get()
	if err != nil {
		return "", fmt.Errorf("cannot find a place for the tokens file: %w; give one with --tokens FILE", err)
	}
	return filepath.Join(d.State, "host-tokens.json"), nil
}

// besideTokens returns the path of a file next to the tokens, such as that of clients,
// logins, shares or people.
func besideTokens(tokens, name string) string {
	return strings.TrimSuffix(tokens, ".json") + "-" + name
}

// openTokens makes the host accept the tokens that were created for it, and use the files
// next to them. The returned function stops watching the tokens' file.
func (s *settings) openTokens(ctx context.Context, o *host.Options, own credential) (stop func(), err error) {
	path, err := tokensPath(s.tokens)
	if err != nil {
		if s.tokens == "" && s.node == nil {
			o.Logger.Warn().Err(err).Msg("there are no tokens besides the host's own, and no machine can pair")
			return func() {}, nil // without a place for the file there are no tokens
		}
		return nil, err
	}
	at := s.places(path)
	t, err := access.Open(at.tokens)
	if err != nil {
		return nil, err
	}
	owners, err := s.owners(path, t)
	if err != nil {
		return nil, err
	}
	people, err := access.OpenPeople(at.people, t)
	if err != nil {
		return nil, err
	}
	log := o.Logger
	clashes, err := people.Clashes()
	if err != nil {
		return nil, err
	}
	for _, i := range clashes {
		log.Warn().Str("name", i.Principal).Str("role", string(i.Role)).Str("id", i.ID).
			Msg("a person has the name of this token, too: create one with another name, and revoke this one")
	}
	readable := func(what string) func(error) {
		return func(err error) {
			if err == nil {
				log.Warn().Msg(what + ": the file can be read again")
				return
			}
			log.Error().Err(err).Msg(what + ": those known before stay in force")
		}
	}
	people.OnError(readable("people"))
	lasting := own.token
	if own.made {
		lasting = "" // the next run makes another token
	}
	o.Access, o.Named, o.Owners, o.People = t, t.Named, owners, people
	damaged := func(err error) { log.Error().Err(err).Send() }
	logins, shares := access.File(besideTokens(path, "logins.json")), access.File(besideTokens(path, "shares.json"))
	if s.node != nil {
		logins, shares = s.node.Place("logins"), s.node.Place("shares")
	}
	o.Logins, o.Shares = access.OpenLogins(logins, t, lasting, damaged), access.OpenShares(shares, damaged)
	ctx, cancel := context.WithCancel(ctx)
	var run sync.WaitGroup
	run.Go(func() { t.Run(ctx, readable("tokens")) })
	return func() { cancel(); run.Wait() }, nil
}

func tokenCommand(stdout io.Writer) *cobra.Command {
	return family(stdout, "token", "create, list and revoke tokens for machines, people and agents", "", tokenCreate, tokenList, tokenRevoke, tokenOwner)
}

// subcommand refuses unknown subcommands.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see " + c.CommandPath() + " --help"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return &usageError{fmt.Sprintf("unknown command %.40q", args[0]), hint}
}

// exactly requires n arguments, named what.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		hint := "see " + c.CommandPath() + " --help"
		switch {
		case len(args) < n:
			return &usageError{"missing argument: " + what, hint}
		case len(args) > n:
			return &usageError{fmt.Sprintf("unexpected argument %.40q", args[n]), hint}
		}
		return nil
	}
}

func tokenCreate(stdout io.Writer, path *string) *cobra.Command {
	var role, expires, owner string
	var once bool
	c := &cobra.Command{
		Use: "create NAME", Short: "create a token and print it",
		Long: `Creates a token for the machine, person or agent called NAME and prints it once; only its hash is stored.
A running host accepts the token at once.

Roles:
  machine    lends terminals and sees only its own (tether pair)
  observer   sees all terminals: tether watch, the web page, agents' tools
  agent      sees all terminals through agents' tools (MCP)
  operator   an agent that can also call the tools of machines, if the host runs with --sessions
  admin      may do everything, including running shells at the host

After tether-host people on, observers and agents see only what is theirs or was granted to them. A machine or agent belongs to
the person that --owner names; an observer is the person of its own name. A person exists once something belongs to them.`,
		Args: exactly(1, "the name of a machine, person or agent"),
		RunE: func(_ *cobra.Command, args []string) error {
			ttl, err := lifetime(expires)
			if err != nil {
				return err
			}
			if err := access.Check(args[0], rights.Role(role)); err != nil {
				return &usageError{err.Error(), "see tether-host token create --help"}
			}
			if once && role != string(rights.RoleMachine) {
				return &usageError{"--once needs the role machine", "omit --once or --role"}
			}
			t, err := tokensAt(*path)
			if err != nil {
				return err
			}
			if owner == "" && role == string(rights.RoleObserver) {
				owner = args[0]
			}
			people, err := peopleAt(*path)
			if err != nil {
				return err
			}
			may := func(id string) error {
				return cmp.Or(t.MayCreate(args[0], rights.Role(role), id), people.MayName(args[0], rights.Role(role), owner))
			}
			if err := ownedBy(t, *path, owner, may); err != nil {
				return err
			}
			create := func() (string, access.Info, error) { return t.Create(args[0], rights.Role(role), ttl) }
			if once {
				ttl = cmp.Or(ttl, pairingTTL)
				create = func() (string, access.Info, error) { return t.CreatePairing(args[0], ttl) }
			}
			token, _, err := create()
			if err != nil {
				return err
			}
			fmt.Fprintln(stdout, token)
			return nil
		},
	}
	c.Flags().StringVar(&role, "role", string(rights.RoleMachine), "machine, observer, agent, operator or admin")
	c.Flags().StringVar(&owner, "owner", "", "the `PERSON` to whom the machine or agent belongs; default: the administrator, and for an observer the person of its name")
	c.Flags().BoolVar(&once, "once", false, "a token that pairs one machine by its key (tether pair --token-file -); expires after an hour, or --expires")
	c.Flags().StringVar(&expires, "expires", "never", "the token's lifetime, such as 12h or 90d, or never")
	return c
}

// maxLifetime bounds the lifetime of a token, in days.
const maxLifetime = 36500

// lifetime parses a duration of at most maxLifetime, which may be in days; 0 means for
// ever.
func lifetime(text string) (time.Duration, error) {
	wrong := &usageError{fmt.Sprintf("--expires must be a duration, not %.40q", text), fmt.Sprintf("for example 12h, 90d or never; at most %dd", maxLifetime)}
	long := &usageError{fmt.Sprintf("--expires %.40s is too long", text), fmt.Sprintf("use at most %dd, or never", maxLifetime)}
	if text == "never" {
		return 0, nil
	}
	var days int
	var d time.Duration
	if n, err := fmt.Sscanf(text, "%dd", &days); err == nil && n == 1 && fmt.Sprintf("%dd", days) == text {
		if days > maxLifetime {
			return 0, long
		}
		d = time.Duration(days) * 24 * time.Hour
	} else if d, err = time.ParseDuration(text); err != nil {
		return 0, wrong
	}
	switch {
	case d <= 0:
		return 0, wrong
	case d > maxLifetime*24*time.Hour:
		return 0, long
	}
	return d, nil
}

func tokensAt(given string) (*access.Tokens, error) {
	at, err := placesOf(context.Background(), given)
	if err != nil {
		return nil, err
	}
	return access.Open(at.tokens)
}

func tokenList(stdout io.Writer, path *string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "list tokens, without their secrets", Args: exactly(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			t, err := tokensAt(*path)
			if err != nil {
				return err
			}
			all, err := t.List()
			if err == nil {
				err = nameOwners(*path, all)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(stdout, map[string]any{"schema_version": 1, "tokens": all})
			}
			return printTokens(stdout, all)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func printTokens(stdout io.Writer, all []access.Info) error {
	w := newTable(stdout, "ID\tNAME\tROLE\tOWNER\tKIND\tCREATED\tEXPIRES")
	for _, i := range all {
		expires := "never"
		switch {
		case i.Expired:
			expires = "expired"
		case i.Expires != nil:
			expires = i.Expires.Local().Format("2006-01-02 15:04")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Principal, i.Role, cmp.Or(i.Owner, "-"), i.Kind, i.Created.Local().Format("2006-01-02 15:04"), expires)
	}
	return w.Flush()
}

func tokenRevoke(stdout io.Writer, path *string) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID|NAME", Short: "revoke a token, or all tokens of a name, and close their connections",
		Args: exactly(1, "a token's id or a name; tether-host token ls shows both"),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := tokensAt(*path)
			if err != nil {
				return err
			}
			revoked, err := t.Revoke(args[0])
			if err != nil {
				return err
			}
			var names []string
			for _, i := range revoked {
				names = append(names, fmt.Sprintf("%s (%s, %s)", i.ID, i.Principal, i.Role))
			}
			fmt.Fprintln(stdout, "revoked", strings.Join(names, ", "))
			return nil
		},
	}
}
