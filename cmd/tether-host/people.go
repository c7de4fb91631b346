package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tether/host/access"
	"tether/host/rights"
)

// peopleAt opens the people next to the tokens, and the tokens.
func peopleAt(tokensFile string) (*access.People, error) {
	at, err := placesOf(context.Background(), tokensFile)
	if err != nil {
		return nil, err
	}
	tokens, err := access.Open(at.tokens)
	if err != nil {
		return nil, err
	}
	return access.OpenPeople(at.people, tokens)
}

// withPeople returns a command's RunE, which opens the people next to the tokens for do.
func withPeople(path *string, do func(people *access.People, args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		people, err := peopleAt(*path)
		if err != nil {
			return err
		}
		return do(people, args)
	}
}

// unaddedPerson stands for the id of a person who is not added yet.
const unaddedPerson = "-"

// ownedBy makes tokens that are created next belong to a person, and adds the person if
// necessary; "" is the administrator. Because an added person stays, ownedBy first asks
// may whether the token can be created. may gets the person's id, or unaddedPerson.
func ownedBy(tokens *access.Tokens, tokensFile, owner string, may func(id string) error) error {
	if owner == "" {
		return may("")
	}
	people, err := peopleAt(tokensFile)
	if err != nil {
		return err
	}
	id, ok := people.Find(owner)
	if !ok {
		id = unaddedPerson
	}
	if err := may(id); err != nil {
		return err
	}
	one, err := people.Ensure(owner)
	if err == nil {
		tokens.OwnedBy(one.ID)
	}
	return err
}

// nameOwners replaces the ids of owners by their names.
func nameOwners(tokensFile string, all []access.Info) error {
	people, err := peopleAt(tokensFile)
	if err != nil {
		return err
	}
	names := people.Look().People
	for i := range all {
		if all[i].Owner != "" {
			all[i].Owner = cmp.Or(names[all[i].Owner], "(has left)")
		}
	}
	return nil
}

func tokenOwner(stdout io.Writer, path *string) *cobra.Command {
	return &cobra.Command{
		Use: "owner NAME PERSON", Short: "say to whom a machine or an agent belongs; - for the administrator",
		Args: exactly(2, "the name of a token and that of a person"),
		RunE: withPeople(path, func(people *access.People, args []string) error {
			tokens := people.Tokens()
			if !tokens.Knows(args[0]) { // before the person is added, who would stay
				return fmt.Errorf("%w: %.80q", access.ErrNoToken, args[0])
			}
			owner, id := "the administrator", ""
			if args[1] != "-" {
				one, err := people.Ensure(args[1])
				if err != nil {
					return err
				}
				owner, id = one.Name, one.ID
			}
			if err := tokens.SetOwner(args[0], id); err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s belongs to %s\n", args[0], owner)
			return nil
		}),
	}
}

// family is a command with subcommands that read the tokens' file.
func family(stdout io.Writer, use, short, long string, subs ...func(stdout io.Writer, path *string) *cobra.Command) *cobra.Command {
	var path string
	c := &cobra.Command{Use: use, Short: short, Long: long, SuggestionsMinimumDistance: 2, Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	tokensFlag(c.PersistentFlags(), &path)
	for _, sub := range subs {
		c.AddCommand(sub(stdout, &path))
	}
	return c
}

func peopleCommand(stdout io.Writer) *cobra.Command {
	return family(stdout, "people", "let everybody see only what is theirs or shared with them", `Once audiences are in force, a terminal is seen by its machine's owner and that person's agents, and by those to whom
it was granted: by "tether lend --to", or by "tether-host grant" where the machine allows that. Everybody else is
told nothing of it. Administrators see names, owners and sizes.`,
		peopleOn, peopleOff, peopleList, peopleRemove)
}

// settle makes each observer without an owner belong to the person of the same name, as
// new observers do.
func settle(people *access.People) ([]access.Info, error) {
	all, err := people.Tokens().List()
	for i := range all {
		if all[i].Role != rights.RoleObserver || all[i].Owner != "" {
			continue
		}
		one, err := people.Ensure(all[i].Principal)
		if err == nil {
			err = people.Tokens().SetOwner(one.Name, one.ID)
		}
		if err != nil {
			return nil, err
		}
		all[i].Owner = one.ID
	}
	return all, err
}

func peopleOn(stdout io.Writer, path *string) *cobra.Command {
	return &cobra.Command{
		Use: "on", Short: "put audiences in force, and print what will be hidden from whom", Args: exactly(0, "no argument"),
		RunE: withPeople(path, func(people *access.People, _ []string) error {
			all, err := settle(people)
			if err != nil {
				return err
			}
			for _, line := range hidden(all, people.Look()) {
				if _, err := fmt.Fprintln(stdout, line); err != nil {
					return err
				}
			}
			if err := people.Switch(true); err != nil {
				return err
			}
			fmt.Fprintln(stdout, "audiences are in force: nobody sees other people's terminals without a grant. tether-host people off undoes this")
			return nil
		}),
	}
}

func peopleOff(stdout io.Writer, path *string) *cobra.Command {
	return &cobra.Command{Use: "off", Short: "let everybody see everything again", Args: exactly(0, "no argument"), RunE: withPeople(path, func(people *access.People, _ []string) error {
		if err := people.Switch(false); err != nil {
			return err
		}
		fmt.Fprintln(stdout, "observers and agents see all terminals. A terminal that a machine lends only to some people is not lent here any more")
		return nil
	})}
}

// hidden returns lines that say, for each token, of which machines it does not see the
// terminals any more without a grant.
func hidden(all []access.Info, known *rights.Roster) (lines []string) {
	machines := map[string]string{} // owners
	for _, i := range all {
		if i.Role == rights.RoleMachine {
			machines[i.Principal] = i.Owner
		}
	}
	done := map[string]bool{}
	for _, i := range all {
		if i.Role == rights.RoleMachine || done[i.Principal] {
			continue
		}
		done[i.Principal] = true
		var not []string
		for _, machine := range slices.Sorted(maps.Keys(machines)) {
			owner := machines[machine]
			if owner != i.Owner || owner == "" && i.Role != rights.RoleAdmin {
				not = append(not, fmt.Sprintf("%s (of %s)", machine, cmp.Or(known.People[owner], "the administrator")))
			}
		}
		switch {
		case len(not) == 0:
			lines = append(lines, fmt.Sprintf("%s (%s) still sees all machines", i.Principal, i.Role))
		default:
			lines = append(lines, fmt.Sprintf("%s (%s) does not see any more: %s", i.Principal, i.Role, strings.Join(not, ", ")))
		}
	}
	var not []string
	for _, machine := range slices.Sorted(maps.Keys(machines)) {
		if machines[machine] != "" {
			not = append(not, machine)
		}
	}
	if len(not) > 0 {
		lines = append(lines, "the host's own token does not see any more: "+strings.Join(not, ", "))
	}
	return lines
}

func peopleList(stdout io.Writer, path *string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "list people, with what belongs to them", Args: exactly(0, "no argument"),
		RunE: withPeople(path, func(people *access.People, _ []string) error {
			on, all, groups, _, err := people.List()
			if err != nil {
				return err
			}
			owned, err := people.Tokens().List()
			if err != nil {
				return err
			}
			type person struct {
				ID     string   `json:"id"`
				Name   string   `json:"name"`
				Ended  bool     `json:"ended,omitempty"`
				Groups []string `json:"groups"`
				Owns   []string `json:"owns"` // names of tokens
			}
			list := []person{}
			for _, one := range all {
				p := person{ID: one.ID, Name: one.Name, Ended: one.Ended != nil, Groups: []string{}, Owns: []string{}}
				for _, name := range slices.Sorted(maps.Keys(groups)) {
					if slices.Contains(groups[name], one.Name) {
						p.Groups = append(p.Groups, name)
					}
				}
				for _, i := range owned {
					if what := string(i.Role) + " " + i.Principal; i.Owner == one.ID && !slices.Contains(p.Owns, what) {
						p.Owns = append(p.Owns, what)
					}
				}
				list = append(list, p)
			}
			if asJSON {
				return printJSON(stdout, map[string]any{"schema_version": 1, "audiences": on, "people": list})
			}
			state := "audiences are not in force: everybody sees everything (tether-host people on)"
			if on {
				state = "audiences are in force"
			}
			fmt.Fprintln(stdout, state)
			if len(list) == 0 {
				return nil
			}
			w := newTable(stdout, "NAME\tGROUPS\tOWNS")
			for _, p := range list {
				if p.Ended {
					p.Name += " (has left)"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, cmp.Or(strings.Join(p.Groups, ", "), "-"), cmp.Or(strings.Join(p.Owns, ", "), "-"))
			}
			return w.Flush()
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

func peopleRemove(stdout io.Writer, path *string) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "remove a person: revoke everything that belongs to them; nobody else can get the name",
		Args: exactly(1, "the name of a person"),
		RunE: withPeople(path, func(people *access.People, args []string) error {
			id, ok := people.Find(args[0])
			if !ok {
				return fmt.Errorf("%w: %.80q", access.ErrNoPerson, args[0])
			}
			revoked, err := people.EndWithAll(id)
			for _, i := range revoked {
				fmt.Fprintf(stdout, "revoked %s (%s %s)\n", i.ID, i.Role, i.Principal)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s has left; nobody else can get the name\n", args[0])
			return nil
		}),
	}
}

// some requires n or more arguments, named what.
func some(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < n {
			return &usageError{"missing argument: " + what, "see " + c.CommandPath() + " --help"}
		}
		return nil
	}
}

func groupCommand(stdout io.Writer) *cobra.Command {
	change := func(use, short string, least int, what string, do func(*access.People, string, ...string) error) func(io.Writer, *string) *cobra.Command {
		return func(_ io.Writer, path *string) *cobra.Command {
			return &cobra.Command{Use: use, Short: short, Args: some(least, what), RunE: withPeople(path, func(people *access.People, args []string) error {
				return do(people, args[0], args[1:]...)
			})}
		}
	}
	return family(stdout, "group", "put people into groups, to which terminals can be granted", "",
		change("add GROUP PERSON…", "add people to a group, which is made if it is missing", 2, "a group and people", (*access.People).Join),
		change("rm GROUP [PERSON…]", "take people out of a group, or remove it", 1, "a group", (*access.People).Leave),
		func(stdout io.Writer, path *string) *cobra.Command {
			return &cobra.Command{Use: "ls", Short: "list groups and their members", Args: exactly(0, "no argument"), RunE: withPeople(path, func(people *access.People, _ []string) error {
				_, _, groups, _, err := people.List()
				if err != nil {
					return err
				}
				w := newTable(stdout, "GROUP\tMEMBERS")
				for _, name := range slices.Sorted(maps.Keys(groups)) {
					fmt.Fprintf(w, "%s\t%s\n", name, cmp.Or(strings.Join(groups[name], ", "), "-"))
				}
				return w.Flush()
			})}
		})
}

func grantCommand(stdout io.Writer) *cobra.Command {
	var path string
	var to []string
	c := &cobra.Command{
		Use: "grant MACHINE --to NAME,…", Short: "let others watch all that a machine lends, if its owner lets the host decide",
		Long: `Lets people (NAME), groups (group:NAME), agents (agent:NAME) or everyone watch what a machine lends, including earlier
output that is still kept. It has effect only if the machine has "host_grants = true" in the section [lend] of its
configuration, and not for those whom its owner has excluded (tether unlend --from).`,
		Args: exactly(1, "the name of a machine"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(to) == 0 {
				return &usageError{"--to is missing", "for example: tether-host grant " + args[0] + " --to ann,group:web"}
			}
			people, err := peopleAt(path)
			if err == nil {
				err = people.Grant(args[0], to...)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s may watch what %s lends, including earlier output, if the machine allows grants of the host\n", strings.Join(to, ", "), args[0])
			return nil
		},
	}
	tokensFlag(c.Flags(), &path)
	c.Flags().StringSliceVar(&to, "to", nil, "`NAMES` of people, group:NAME, agent:NAME, or everyone")
	return c
}

func grantsCommand(stdout io.Writer) *cobra.Command {
	return family(stdout, "grants", "list and end the host's grants", "",
		func(stdout io.Writer, path *string) *cobra.Command {
			var asJSON bool
			c := &cobra.Command{Use: "ls", Short: "list what tether-host grant has granted", Args: exactly(0, "no argument"), RunE: withPeople(path, func(people *access.People, _ []string) error {
				_, _, _, grants, err := people.List()
				if err != nil {
					return err
				}
				names := people.Look().People
				for i := range grants {
					grants[i].Owner = names[grants[i].Owner]
				}
				if asJSON {
					return printJSON(stdout, map[string]any{"schema_version": 1, "grants": append([]access.MachineGrant{}, grants...)})
				}
				w := newTable(stdout, "MACHINE\tOWNER\tTO\tSINCE")
				for _, g := range grants {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", g.Machine, cmp.Or(g.Owner, "-"), g.To, g.Created.Local().Format("2006-01-02 15:04"))
				}
				return w.Flush()
			})}
			c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
			return c
		},
		func(stdout io.Writer, path *string) *cobra.Command {
			return &cobra.Command{Use: "end MACHINE [TO]", Short: "end a grant, or all of a machine", Args: some(1, "the name of a machine"), RunE: withPeople(path, func(people *access.People, args []string) error {
				n, err := people.EndGrant(args[0], strings.Join(args[1:], ","))
				if err != nil {
					return err
				}
				fmt.Fprintf(stdout, "ended %d; a running host follows within two seconds\n", n)
				return nil
			})}
		})
}
