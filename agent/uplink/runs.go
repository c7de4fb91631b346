package uplink

import (
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"tether/agent/term"
	"tether/ahp"
	"tether/internal/clip"
	"tether/jsonrpc"
)

// Bounds of a host's questions about runs.
const (
	askedAtOnce = 2                // questions that are answered
	askedAhead  = 16               // questions that wait for others
	askTime     = 12 * time.Second // bounds one answer
	// A host may use an eighth of the machine's time, and a minute of it after a pause.
	askShare = 125 // ms per s
	askBurst = 60_000
)

var errAsksTooMuch = jsonrpc.Errorf(jsonrpc.CodeOverloaded, "this host asks too much of the machine about earlier runs: try again in a minute")

// Asked is a question of the host about earlier runs.
type Asked struct {
	ahp.RunsParams
	Terminal term.ID // that the question is about, "" if none
}

type question struct {
	Asked
	r *jsonrpc.Request
}

// newUsed returns the limiter of the time that a host's questions take, in milliseconds.
func newUsed() *rate.Limiter { return rate.NewLimiter(askShare, askBurst) }

// onRequest is called on the read goroutine for each request of the host.
func (s *session) onRequest(r *jsonrpc.Request) {
	if r.Method != ahp.MethodRuns || s.link.opts.Runs == nil || !s.live.Load() || !s.marker.Runs {
		_ = r.ReplyError(jsonrpc.MethodNotFound(r.Method)) // fails only with the connection, as below
		return
	}
	q := &question{r: r}
	if err := ahp.DecodeParams(r.Params, &q.RunsParams); err != nil {
		_ = r.ReplyError(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err.Error()))
		return
	}
	q.Arguments = slices.Clone(q.Arguments)
	if q.Channel != "" {
		le := s.link.byURI(q.Channel)
		if le == nil {
			_ = r.Reply(ahp.RunsResult{Error: "no such terminal", Unknown: true})
			return
		}
		q.Terminal = le.h.ID()
	}
	select {
	case s.asked <- q:
	default:
		_ = r.ReplyError(errAsksTooMuch)
	}
}

// answerRuns answers the host's questions until ctx ends.
func (s *session) answerRuns(ctx context.Context) {
	for {
		select {
		case q := <-s.asked:
			if s.link.used.Tokens() <= 0 {
				_ = q.r.ReplyError(errAsksTooMuch)
				continue
			}
			began := time.Now()
			a := s.answer(ctx, q)
			s.link.used.ReserveN(time.Now(), int(min(time.Since(began).Milliseconds()+1, askBurst)))
			_ = q.r.Reply(a)
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) answer(ctx context.Context, q *question) ahp.RunsResult {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	a := s.link.opts.Runs(ctx, q.Asked)
	if len(a.Answer) > ahp.MaxRunsAnswer {
		a = ahp.RunsResult{Error: "the answer is too long for a host: ask for less"}
	}
	a.Error = clip.Text(a.Error, ahp.MaxRunsError)
	return a
}
