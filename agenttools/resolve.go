package agenttools

import (
	"errors"
	"fmt"
	"strings"

	"tether/screen"
)

// maxCandidates bounds the number of terminals in the error for an ambiguous name.
const maxCandidates = 8

// resolve checks the terminal that a call names, and replaces a name by the terminal's
// id. It leaves an unknown name, because each tool has its own answer to that.
func (s *Set) resolve(t *target) error {
	if err := t.check(); err != nil {
		return err
	}
	if _, err := s.opts.Terminals.Open(t.TerminalID); err == nil {
		return nil
	}
	id, err := Resolve(s.opts.Terminals.List(), s.opts.Machine, t.TerminalID)
	if err == nil {
		t.TerminalID = id
	}
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Resolve returns the id of the one terminal that ref names. ref may be an id, a name as
// list_terminals shows it, or that name with or without the machine in front. here is the
// machine of terminals that have none in their Info, "" if unknown. A full name has
// priority over a name without a machine, so that no machine can take another's name, and
// a running terminal has priority over exited ones. The error is ErrNotFound, or a
// sentence for the model that lists the candidates.
func Resolve(all []Info, here, ref string) (id string, err error) {
	const fullRunning, fullExited, shortRunning, shortExited, ranks = 0, 1, 2, 3, 4
	var found [ranks][]Info
	for _, i := range all {
		rank := fullRunning
		full, short := names(i, here)
		switch {
		case i.ID == ref:
			return ref, nil
		case ref == "":
			continue
		case full == ref:
		case short == ref:
			rank = shortRunning
		default:
			continue
		}
		if i.Exit != nil {
			rank++
		}
		found[rank] = append(found[rank], i)
	}
	for _, fit := range found {
		switch len(fit) {
		case 0:
		case 1:
			return fit[0].ID, nil
		default:
			return "", ambiguous(ref, fit)
		}
	}
	return "", ErrNotFound
}

// names returns the name of a terminal with and without its machine, as lists show it.
func names(i Info, here string) (full, short string) {
	name := screen.Clean(i.Name)
	switch {
	case i.Machine == "" && here == "":
		return name, name
	case i.Machine == "":
		return screen.Clean(here) + "/" + name, name
	}
	return name, strings.TrimPrefix(name, screen.Clean(i.Machine)+"/")
}

// ambiguous returns the error for a name that fits several terminals; it lists them.
func ambiguous(ref string, fit []Info) error {
	var list []string
	for _, i := range fit[:min(len(fit), maxCandidates)] {
		list = append(list, fmt.Sprintf("%s (%.100s)", i.ID, screen.Clean(i.Name)))
	}
	more := ""
	if n := len(fit) - len(list); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return said(fmt.Sprintf("%.60q matches %d terminals: %s%s; use an id", ref, len(fit), strings.Join(list, ", "), more))
}
