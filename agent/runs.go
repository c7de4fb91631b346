package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"tether/agent/history"
	"tether/agent/localapi"
	"tether/agent/runs"
	"tether/agent/term"
	"tether/platform/dirs"
	"tether/problems"
)

// historyCause is the cause in status when what terminals print cannot be kept.
const historyCause = "history"

// HistoryDir is the directory with what is kept of terminals' runs.
func HistoryDir(d dirs.Dirs) string { return filepath.Join(d.State, "history") }

// openRuns begins to keep what terminals print, until the returned function is called;
// or, if the person has turned that off, it removes what there is.
func (a *Agent) openRuns(ctx context.Context, matchers *problems.Set) (end func(within time.Duration), err error) {
	c := a.settings.History
	h, err := history.Open(history.Options{Dir: HistoryDir(a.cfg.Dirs), Keep: time.Duration(c.Keep), MaxBytes: int64(c.MaxBytes), FS: a.cfg.HistoryFS, Report: func(trouble string) {
		if trouble != "" {
			trouble = "what terminals print is not kept: " + trouble
		}
		a.degraded.report(historyCause, trouble)
	}})
	switch {
	case c.Keep == 0:
		if err != nil {
			a.degraded.report(historyCause, fmt.Sprintf("the history is off, but not all of it could be removed: %v", err))
		}
		return func(time.Duration) {}, nil
	case err != nil:
		return nil, err
	}
	if n := h.Status().Damaged; n > 0 {
		a.log.Warn().Int("lines", n).Msg("the list of runs has damaged lines, which are left out")
	}
	a.runs = runs.Open(runs.Options{History: h, Access: a.pool.As(term.User), Never: a.never, HostID: a.hosts.ID, Checkouts: &a.checkouts, Matchers: matchers, Logger: &a.log})
	return a.runs.Record(context.WithoutCancel(ctx)), nil
}

// slowRound is how long a round of syncs may take before status tells it.
const slowRound = 2 * time.Second

// historyStatus is the history's part of status.
func (a *Agent) historyStatus() *localapi.HistoryStatus {
	c := a.settings.History
	s := &localapi.HistoryStatus{On: a.runs != nil, Keep: c.Keep.String(), MaxBytes: int64(c.MaxBytes)}
	if a.runs == nil {
		return s
	}
	is := a.runs.History().Status()
	s.Runs, s.Bytes, s.Oldest = is.Runs, is.Bytes, is.Oldest
	if is.Round > slowRound {
		s.RoundMs = is.Round.Milliseconds()
	}
	return s
}
