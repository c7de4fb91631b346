package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tether/agent/localapi"
	"tether/ahp"
	"tether/ahp/client"
	"tether/cmd/tether/internal/display"
	"tether/cmd/tether/internal/view"
	"tether/platform/tty"
)

// viewer shows an observer's events. It is used by one goroutine.
type viewer struct {
	app      *app
	want     watching
	observer *client.Observer
	at       client.Endpoint

	up      bool // the host was connected at least once
	down    bool // the person was told that the host is not connected now
	waiting bool // the person was told that this program waits
	one     *view.Stream
	uri     string // URI of the terminal in one; "" while a guest's terminal is not at the host
	all     map[string]*view.Lines
}

// event shows one event. done says that there is nothing more to see.
func (v *viewer) event(ctx context.Context, e client.Event) (done bool, err error) {
	switch e.Kind {
	case client.Up:
		if v.down {
			v.app.notice("reconnected to the host\r")
		}
		v.up, v.down = true, false
	case client.Down:
		return v.lost(e.Err)
	case client.Terminals:
		return v.terminals(ctx, e.Terminals)
	default:
		return v.terminal(ctx, e)
	}
	return false, nil
}

// lost tells the person once that the link is down. If it was never up, lost ends the
// program, since the URL is wrong or no host listens.
func (v *viewer) lost(err error) (done bool, _ error) {
	if !v.up {
		return true, hostError(err)
	}
	if !v.down {
		v.app.notice("%v; retrying\r", err)
	}
	v.down = true
	return false, nil
}

// terminals handles a new list of the host's terminals.
func (v *viewer) terminals(ctx context.Context, all []ahp.TerminalInfo) (done bool, err error) {
	switch {
	case v.want.list:
		return true, v.app.printHostTerminals(all, v.listParked(ctx), v.want.asJSON)
	case v.want.guest:
		return false, v.followGuest(all)
	case v.one != nil:
		return false, nil
	case v.want.first && len(all) > 0:
		return false, v.follow(all[0])
	case v.want.first:
		v.await("a terminal")
	case v.want.terminal != "":
		t, err := find(all, v.want.terminal)
		if err == nil {
			return false, v.follow(t)
		}
		if localapi.ExitStatus(err) != localapi.ExitNoTerminal {
			return true, err
		}
		if !v.want.wait {
			return true, v.showParked(ctx, err)
		}
		v.await(fmt.Sprintf("%q", v.want.terminal))
	default:
		v.followAll(all)
	}
	return false, nil
}

// showParked shows what the host keeps of the terminal while its machine is away. If it
// keeps no terminal of that name, it returns missing.
func (v *viewer) showParked(ctx context.Context, missing error) error {
	parked, err := v.parked(ctx)
	if err != nil {
		return missing
	}
	all := make([]ahp.TerminalInfo, len(parked.Terminals))
	for i, p := range parked.Terminals {
		all[i] = ahp.TerminalInfo{Resource: p.Channel, Title: cmp.Or(p.Title, p.Name)}
	}
	found, err := find(all, v.want.terminal)
	if err != nil {
		if localapi.ExitStatus(err) == localapi.ExitNoTerminal {
			return missing
		}
		return err
	}
	p := parked.Terminals[slices.IndexFunc(parked.Terminals, func(p ahp.Parked) bool { return p.Channel == found.Resource })]
	since, until := parkedTimes(p)
	if p.Dropped != "" {
		return &localapi.Error{Code: localapi.CodeNoTerminal, Message: fmt.Sprintf("the terminal's machine is away since %s, and the host keeps its text no more: %s", display.Clock(since), display.Printable(p.Dropped, 80))}
	}
	s, err := v.at.ParkedText(ctx, p.ID)
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		return &localapi.Error{Code: localapi.CodeRefused, Message: fmt.Sprintf("the terminal's machine is away since %s; the host shows what it keeps of it to observers alone", display.Clock(since)),
			Hint: "log in with tether login, or give an observer's token with --token-file"}
	case err != nil:
		return hostError(err)
	}
	if err := v.follow(found); err != nil {
		return err
	}
	if err := v.one.Resync(s); err != nil {
		return err
	}
	v.close()
	v.app.notice("its machine is away since %s; the host keeps this until %s", display.Clock(since), display.Clock(until))
	return nil
}

func (v *viewer) await(what string) {
	if !v.waiting {
		v.app.notice("waiting for %s\r", what)
	}
	v.waiting = true
}

// followGuest shows the one terminal that a guest sees, also after its machine has lent
// it anew. If it is not at the host, followGuest tells the person that it waits.
func (v *viewer) followGuest(all []ahp.TerminalInfo) error {
	switch {
	case v.uri != "":
	case len(all) > 0:
		return v.follow(all[0])
	default:
		v.await("the machine that shares the terminal")
	}
	return nil
}

// follow begins to show one terminal with its output unchanged.
func (v *viewer) follow(t ahp.TerminalInfo) error {
	if v.one == nil {
		v.one = view.NewStream(v.app.stdout, tty.Is(v.app.stdoutFile), display.Colours(v.app.stdoutFile))
	}
	v.uri, v.waiting = t.Resource, false
	v.observer.Follow(t.Resource)
	return nil
}

// followAll begins to show all terminals line by line.
func (v *viewer) followAll(all []ahp.TerminalInfo) {
	if v.all == nil {
		v.all = map[string]*view.Lines{}
	}
	for _, t := range all {
		if v.all[t.Resource] == nil {
			v.all[t.Resource] = &view.Lines{Out: v.app.stdout, Title: t.Title, Faint: display.Colours(v.app.stdoutFile)}
			v.observer.Follow(t.Resource)
		}
	}
	if len(v.all) == 0 {
		v.await("terminals")
	}
}

// terminal shows an event of a terminal.
func (v *viewer) terminal(ctx context.Context, e client.Event) (done bool, err error) {
	var to view.View = v.one
	if v.one == nil {
		l := v.all[e.Terminal]
		if l == nil {
			return false, nil
		}
		to = l
	}
	exit := ahp.Lifecycle{}
	switch e.Kind {
	case client.Resync:
		err, exit = to.Resync(*e.State), e.State.Lifecycle
	case client.Data:
		err = to.Data(e.Data)
	case client.Action:
		err = to.Action(e.Action)
		if x, ok := e.Action.(ahp.TerminalExited); ok {
			exit = ahp.Exited(x.ExitCode)
		}
	case client.Gone:
		return v.gone(e)
	}
	if err == nil && exit.Exited() {
		return v.exited(ctx, e.Terminal, exit)
	}
	return false, err
}

func (v *viewer) exited(ctx context.Context, uri string, exit ahp.Lifecycle) (done bool, err error) {
	text := "exited"
	if exit.ExitCode != nil {
		text = fmt.Sprintf("exited %d", *exit.ExitCode)
	}
	if v.one == nil {
		return false, v.all[uri].Say(text)
	}
	v.close()
	if parked, err := v.parked(ctx); err == nil {
		for _, p := range parked.Terminals { // AHP shows a parked terminal as exited
			if p.Channel == uri {
				_, until := parkedTimes(p)
				text = fmt.Sprintf("the terminal's machine is away; the host keeps this until %s, and the terminal goes on if the machine is back before", display.Clock(until))
			}
		}
	}
	v.app.notice("%s", text)
	return true, nil
}

// gone handles the end of a terminal whose exit was not seen.
func (v *viewer) gone(e client.Event) (done bool, err error) {
	if l := v.all[e.Terminal]; l != nil {
		delete(v.all, e.Terminal)
		return false, l.End(e.Err)
	}
	if v.want.guest && e.Err == nil { // the host has restarted, and the machine has not connected again yet
		v.uri = ""
		return false, v.followGuest(v.observer.Terminals())
	}
	message := "the host no longer has the terminal"
	if e.Err != nil {
		message = fmt.Sprintf("the terminal cannot be shown: %v", e.Err)
	}
	return true, &localapi.Error{Code: localapi.CodeNoTerminal, Message: message}
}

// close restores the person's terminal.
func (v *viewer) close() {
	if v.one != nil {
		_ = v.one.Close() // an error cannot be shown anywhere
	}
}

// hostList is the output of watch --list --json.
type hostList struct {
	SchemaVersion int            `json:"schema_version"`
	Terminals     []hostTerminal `json:"terminals"`
}

type hostTerminal struct {
	URI       string    `json:"uri"`
	Title     string    `json:"title"`
	Awaits    string    `json:"awaits,omitempty"` // awaiting_input or awaiting_secret, while the program waits for typed input
	Ready     string    `json:"ready,omitempty"`  // starting, ready, failed or stopped
	Exited    bool      `json:"exited"`
	ExitCode  *int64    `json:"exit_code,omitempty"`
	Target    string    `json:"execution_target,omitempty"`
	AwaySince time.Time `json:"away_since,omitzero"` // of a terminal whose machine is away
	KeptUntil time.Time `json:"kept_until,omitzero"`
	Dropped   string    `json:"dropped,omitempty"` // why the host does not keep the text any more
}

// parked returns the terminals that the host keeps while their machines are away.
func (v *viewer) parked(ctx context.Context) (ahp.ParkedResult, error) {
	ctx, cancel := context.WithTimeout(ctx, parkedTimeout)
	defer cancel()
	return v.observer.Parked(ctx)
}

// listParked returns the terminals of parked for a list. If they cannot be had, it tells
// the person that the list lacks them.
func (v *viewer) listParked(ctx context.Context) []ahp.Parked {
	r, err := v.parked(ctx)
	switch {
	case err != nil:
		v.app.notice("terminals of machines that are away are not listed: %v", err)
	case r.More > 0:
		v.app.notice("%d more terminals of machines that are away are not listed", r.More)
	}
	return r.Terminals
}

// parkedTimes returns since when the terminal's machine is away and until when the host
// keeps the terminal, by this machine's clock.
func parkedTimes(p ahp.Parked) (since, until time.Time) {
	now, most := time.Now(), ahp.MaxPark.Milliseconds()
	return now.Add(-time.Duration(min(p.AwayMs, most)) * time.Millisecond).Truncate(time.Second), now.Add(time.Duration(min(p.LeftMs, most)) * time.Millisecond).Truncate(time.Second)
}

// parkedTimeout bounds the wait for the answer to parked.
const parkedTimeout = 5 * time.Second

func (a *app) printHostTerminals(all []ahp.TerminalInfo, parked []ahp.Parked, asJSON bool) error {
	l := hostList{SchemaVersion: localapi.SchemaVersion, Terminals: []hostTerminal{}}
	for _, t := range all {
		l.Terminals = append(l.Terminals, hostTerminal{URI: t.Resource, Title: t.Title, Awaits: t.Meta.Awaits.String(), Ready: t.Meta.Ready.String(), Exited: t.Lifecycle.Exited(),
			ExitCode: t.Lifecycle.ExitCode, Target: string(t.ExecutionTarget)})
	}
	for _, t := range parked {
		since, until := parkedTimes(t)
		l.Terminals = append(l.Terminals, hostTerminal{URI: t.Channel, Title: t.Title, Target: string(ahp.TargetClient), Dropped: t.Dropped, AwaySince: since, KeptUntil: until})
	}
	if asJSON {
		return a.printJSON(l)
	}
	w := a.table("TITLE\tSTATE\tRUNS AT\tURI")
	for _, t := range l.Terminals {
		printHostTerminal(w, t)
	}
	return w.Flush()
}

func printHostTerminal(w io.Writer, t hostTerminal) {
	state, at := "running", "the host"
	switch {
	case t.Exited:
		state = "exited"
	case t.Awaits != "":
		state = display.Awaits(t.Awaits)
	case t.Ready != "":
		state = display.Ready(t.Ready)
	case t.Dropped != "":
		state = "away since " + display.Clock(t.AwaySince) + ", its text is gone: " + display.Printable(t.Dropped, 80)
	case !t.AwaySince.IsZero():
		state = "away since " + display.Clock(t.AwaySince) + ", kept until " + display.Clock(t.KeptUntil)
	}
	if t.Target == string(ahp.TargetClient) {
		at = "a client"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", display.Printable(t.Title, 40), state, at, display.Printable(t.URI, 0))
}
