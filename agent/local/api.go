package local

import (
	"tether/agent/localapi"
	"tether/agent/term"
)

// terminalFrom converts the core's info to this door's form.
func terminalFrom(i term.Info) localapi.Terminal {
	t := localapi.Terminal{
		ID: string(i.ID), Name: i.Name, Title: i.Title, Command: i.Command, Cwd: i.Cwd,
		Cols: int(i.Size.Cols), Rows: int(i.Size.Rows), Owner: i.Owner.String(), Visible: i.Visible, Private: i.Private,
		LentTo: i.LentTo, Pid: i.Pid, Started: i.Started, Bytes: i.Bytes, Retained: i.Retained, Attached: i.Attached, Held: i.Held, Lost: i.Lost,
		CommandDetection: i.CommandDetection, Loans: loansFrom(i.Loans), Door: i.Door,
		Ready: string(i.Ready.State), ReadySince: i.Ready.Since, ReadyWhy: i.Ready.Why,
	}
	if t.LentTo == nil {
		t.LentTo = []string{}
	}
	if i.Exit != nil {
		t.Exit = &localapi.Exit{Code: i.Exit.Code, Signal: i.Exit.Signal, At: i.Exit.At}
	}
	if i.Running != nil {
		t.Running = i.Running.Line
	}
	return t
}

// commandFrom converts the core's command to this door's form.
func commandFrom(c term.Command) localapi.Command {
	out := localapi.Command{N: c.N, Started: c.Started, Exit: c.Exit, Running: !c.Done, Verified: c.Verified, Within: c.Within, Start: c.Start, End: c.End}
	if c.HasLine {
		out.Line = &c.Line
	}
	if c.Done {
		ms := float64(c.Duration.Microseconds()) / 1000
		out.DurationMs = &ms
	}
	return out
}
