package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"tether/agent/local"
	"tether/ahp"
	"tether/ahp/client"
	"tether/platform/tty"
)

// viewer shows an observer's events. It is used by one goroutine.
type viewer struct {
	app      *app
	want     watching
	observer *client.Observer

	up      bool // the host was reached once
	down    bool // the person knows that it is not reached now
	waiting bool // the person knows that we wait
	one     *plainView
	uri     string // of one; "" while a guest's terminal is not there
	all     map[string]*lineView
}

// event shows one event; done when there is nothing more to see.
func (v *viewer) event(e client.Event) (done bool, err error) {
	switch e.Kind {
	case client.Up:
		if v.down {
			v.app.notice("reconnected to the host\r")
		}
		v.up, v.down = true, false
	case client.Down:
		return v.lost(e.Err)
	case client.Terminals:
		return v.terminals(e.Terminals)
	default:
		return v.terminal(e)
	}
	return false, nil
}

// lost tells once that the link is down. Before it was ever up, that is the end: the URL is wrong, or nobody is there.
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

// terminals acts on the host's list.
func (v *viewer) terminals(all []ahp.TerminalInfo) (done bool, err error) {
	switch {
	case v.want.list:
		return true, v.app.printHostTerminals(all, v.parked(), v.want.asJSON)
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
		if !v.want.wait || local.ExitStatus(err) != local.ExitNoTerminal {
			return true, err
		}
		v.await(fmt.Sprintf("%q", v.want.terminal))
	default:
		v.followAll(all)
	}
	return false, nil
}

func (v *viewer) await(what string) {
	if !v.waiting {
		v.app.notice("waiting for %s\r", what)
	}
	v.waiting = true
}

// followGuest shows the one terminal that a guest sees, also when its machine has lent it anew, or waits for it.
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

// follow shows one terminal unchanged.
func (v *viewer) follow(t ahp.TerminalInfo) error {
	if v.one == nil {
		v.one = newPlainView(v.app.stdout, tty.Is(v.app.stdout), colours(v.app.stdout))
	}
	v.uri, v.waiting = t.Resource, false
	v.observer.Follow(t.Resource)
	return nil
}

// followAll shows all terminals by lines.
func (v *viewer) followAll(all []ahp.TerminalInfo) {
	if v.all == nil {
		v.all = map[string]*lineView{}
	}
	for _, t := range all {
		if v.all[t.Resource] == nil {
			v.all[t.Resource] = &lineView{out: v.app.stdout, title: t.Title, faint: colours(v.app.stdout)}
			v.observer.Follow(t.Resource)
		}
	}
	if len(v.all) == 0 {
		v.await("terminals")
	}
}

// view is how a terminal is shown.
type view interface {
	// resync shows a state that replaces everything since the last shown output.
	resync(s ahp.TerminalState) error
	data(p []byte) error
	action(a ahp.Action) error
}

// terminal shows an event of a terminal.
func (v *viewer) terminal(e client.Event) (done bool, err error) {
	var to view = v.one
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
		err, exit = to.resync(*e.State), e.State.Lifecycle
	case client.Data:
		err = to.data(e.Data)
	case client.Action:
		err = to.action(e.Action)
		if x, ok := e.Action.(ahp.TerminalExited); ok {
			exit = ahp.Exited(x.ExitCode)
		}
	case client.Gone:
		return v.gone(e)
	}
	if err == nil && exit.Exited() {
		return v.exited(e.Terminal, exit)
	}
	return false, err
}

func (v *viewer) exited(uri string, exit ahp.Lifecycle) (done bool, err error) {
	text := "exited"
	if exit.ExitCode != nil {
		text = fmt.Sprintf("exited %d", *exit.ExitCode)
	}
	if v.one == nil {
		return false, v.all[uri].say(text)
	}
	v.close()
	v.app.notice("%s", text)
	return true, nil
}

// gone is the end of a terminal that did not exit before our eyes.
func (v *viewer) gone(e client.Event) (done bool, err error) {
	if l := v.all[e.Terminal]; l != nil {
		delete(v.all, e.Terminal)
		return false, l.end(e.Err)
	}
	if v.want.guest && e.Err == nil { // the host was started again, and the machine is not back yet
		v.uri = ""
		return false, v.followGuest(v.observer.Terminals())
	}
	message := "the host no longer has the terminal"
	if e.Err != nil {
		message = fmt.Sprintf("the terminal cannot be shown: %v", e.Err)
	}
	return true, &local.Error{Code: local.CodeNoTerminal, Message: message}
}

// close leaves the person's terminal as it was.
func (v *viewer) close() {
	if v.one != nil {
		_ = v.one.close() // nothing helps when it is gone
	}
}

// hostList is the output of watch --list --json.
type hostList struct {
	SchemaVersion int            `json:"schema_version"`
	Terminals     []hostTerminal `json:"terminals"`
}

type hostTerminal struct {
	URI      string `json:"uri"`
	Title    string `json:"title"`
	Awaits   string `json:"awaits,omitempty"` // awaiting_input or awaiting_secret, while it waits for typed input
	Ready    string `json:"ready,omitempty"`  // starting, ready, failed or stopped, where that is said
	Exited   bool   `json:"exited"`
	ExitCode *int64 `json:"exit_code,omitempty"`
	Target   string `json:"execution_target,omitempty"`
	// AwaySince is since when the terminal's machine is away; then only the
	// host's own interfaces have the terminal, until KeptUntil. Both are absent for others.
	AwaySince time.Time `json:"away_since,omitzero"`
	KeptUntil time.Time `json:"kept_until,omitzero"`
	Dropped   string    `json:"dropped,omitempty"` // why its text is not kept any more
}

// parked is what the host keeps of terminals whose machines are away.
func (v *viewer) parked() []ahp.Parked {
	ctx, cancel := context.WithTimeout(context.Background(), parkedTimeout)
	defer cancel()
	r, err := v.observer.Parked(ctx)
	switch {
	case err != nil:
		v.app.notice("terminals of machines that are away are not listed: %v", err)
	case r.More > 0:
		v.app.notice("%d more terminals of machines that are away are not listed", r.More)
	}
	return r.Terminals
}

// parkedTimeout bounds the wait for that.
const parkedTimeout = 5 * time.Second

func (a *app) printHostTerminals(all []ahp.TerminalInfo, parked []ahp.Parked, asJSON bool) error {
	l := hostList{SchemaVersion: local.SchemaVersion, Terminals: []hostTerminal{}}
	for _, t := range all {
		l.Terminals = append(l.Terminals, hostTerminal{URI: t.Resource, Title: t.Title, Awaits: t.Meta.Awaits.String(), Ready: t.Meta.Ready.String(), Exited: t.Lifecycle.Exited(),
			ExitCode: t.Lifecycle.ExitCode, Target: string(t.ExecutionTarget)})
	}
	now := time.Now()
	for _, t := range parked {
		l.Terminals = append(l.Terminals, hostTerminal{URI: t.Channel, Title: t.Title, Target: string(ahp.TargetClient), Dropped: t.Dropped,
			AwaySince: now.Add(-time.Duration(t.AwayMs) * time.Millisecond).Truncate(time.Second), KeptUntil: now.Add(time.Duration(t.LeftMs) * time.Millisecond).Truncate(time.Second)})
	}
	if asJSON {
		return a.printJSON(l)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TITLE\tSTATE\tRUNS AT\tURI")
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
		state = awaitsText(t.Awaits)
	case t.Ready != "":
		state = readyText(t.Ready)
	case t.Dropped != "":
		state = "away since " + clock(t.AwaySince) + ", its text is gone: " + printable(t.Dropped, 80)
	case !t.AwaySince.IsZero():
		state = "away since " + clock(t.AwaySince) + ", kept until " + clock(t.KeptUntil)
	}
	if t.Target == string(ahp.TargetClient) {
		at = "a client"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", printable(t.Title, 40), state, at, printable(t.URI, 0))
}
