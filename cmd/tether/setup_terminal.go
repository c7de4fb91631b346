package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tether/installer/termprofile"
	"tether/platform/dirs"
)

func setupTerminalCommand(a *app) *cobra.Command {
	var undo, yes, def bool
	c := &cobra.Command{
		Use: "terminal [PROGRAM…]", Short: "make new shells of terminal programs tether terminals",
		Long: `make new shells of all installed terminal programs, or of the named ones, tether
terminals: vscode, cursor, zed, iterm2, windows-terminal, gnome-terminal, konsole, kitty,
wezterm, ghostty, alacritty, tmux, zellij.

A program that has profiles gets one, called tether, beside your usual shell; --default
makes it the default. In others the setting is that of all new windows.

The shells are lent to nobody, unless you do that later. Agents on this machine can read
them, as your other terminals. They start with tether shell --window, which is silent, and
without tether if no daemon runs: tether service install starts one at login.

The command shows each change before it writes anything. All other content of the files
stays the same; a file that cannot be edited this way is skipped, and the command says
what to write by hand. --undo removes the changes.`,
		Example: "  tether setup terminal\n  tether setup terminal vscode --default\n  tether setup terminal kitty tmux --undo",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			all, _ := termprofile.Here("tether") // without a home directory there are none
			return terminalIDs(all), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			program, err := stableProgram()
			if err != nil {
				return err
			}
			all, err := termprofile.Here(program)
			if err != nil {
				return &hinted{err, "set it to your home directory"}
			}
			chosen, err := chosenTerminals(c, all, args)
			if err != nil {
				return err
			}
			if len(chosen) == 0 {
				fmt.Fprintln(a.stdout, "no known terminal program is installed; name one to configure it anyway: "+strings.Join(terminalIDs(all), ", "))
				return nil
			}
			var edits []fileEdit
			for _, p := range chosen {
				edits = append(edits, a.planTerminal(c.Context(), p, undo, def)...)
			}
			if len(edits) == 0 {
				return nil
			}
			if home := os.Getenv(dirs.HomeVar); home != "" && !undo {
				a.notice("%s is set here: the new shells find this daemon only if the terminal programs have that variable, too", dirs.HomeVar)
			}
			then := "new windows have it; some programs read their files only when they start"
			return a.confirmEdits(c, edits, then, yes)
		},
	}
	c.Flags().BoolVar(&undo, "undo", false, "remove the changes")
	c.Flags().BoolVar(&def, "default", false, "make the profile the default")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "write without asking")
	return c
}

func terminalIDs(all []termprofile.Program) (ids []string) {
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}

// chosenTerminals returns the named terminal programs, or all installed ones if none is
// named.
func chosenTerminals(c *cobra.Command, all []termprofile.Program, names []string) ([]termprofile.Program, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(all), func(p termprofile.Program) bool { return !p.Installed(exec.LookPath) }), nil
	}
	for _, name := range names {
		if !slices.Contains(terminalIDs(all), name) {
			return nil, usage(c, "unknown terminal program %q; known ones: %s", name, strings.Join(terminalIDs(all), ", "))
		}
	}
	return slices.DeleteFunc(all, func(p termprofile.Program) bool { return !slices.Contains(names, p.ID) }), nil
}

// planTerminal shows the changes for one terminal program. If one cannot be made, none
// is.
func (a *app) planTerminal(ctx context.Context, p termprofile.Program, undo, def bool) (edits []fileEdit) {
	for _, place := range p.Places {
		mode := os.FileMode(0o600)
		if place.Mode != 0 {
			mode = place.Mode
		}
		e := ofFile(p.Name, place.Path, mode)
		if place.Dconf {
			e.read = func() ([]byte, error) { return termprofile.DconfText(ctx, place.Path) }
			e.write = func(before, after []byte) error { return termprofile.WriteDconf(ctx, place.Path, before, after) }
		}
		changes, err := a.planEdit(&e, undo, func(text []byte) ([]byte, error) {
			if undo {
				return place.Removed(text)
			}
			return place.Added(text, def)
		})
		switch {
		case err != nil && undo:
			a.notice("%s: skipped %s: %v", p.Name, place.Path, err)
		case err != nil:
			a.notice("%s: skipped %s: %v. By hand %s", p.Name, place.Path, err, p.Hand)
			return nil
		case changes:
			edits = append(edits, e)
		}
	}
	if len(edits) == 0 || undo {
		return edits
	}
	switch {
	case p.Sole:
		fmt.Fprintf(a.stdout, "  %s has no profiles: all its new windows have this shell\n", p.Name)
	case def && p.DefaultByHand != "":
		fmt.Fprintf(a.stdout, "  the default, by hand: %s\n", p.DefaultByHand)
	case !def:
		fmt.Fprintln(a.stdout, "  a profile beside your usual shell; --default makes it the default")
	}
	return edits
}
