package conform

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/jsonrpc"
)

// Options configure Run. Endpoint is required.
type Options struct {
	Endpoint client.Endpoint
	// Observer is the endpoint of a second client, which needs no right to lend; the zero
	// value means Endpoint.
	Observer client.Endpoint
	// Timeout is how long the host may take for each step, default 10 s.
	Timeout time.Duration
	// Plain leaves out the rules for client-executed terminals.
	Plain bool
	// Assume checks the rules for client-executed terminals even if the host does not
	// show the marker. It is for hosts that follow the bare proposal.
	Assume bool
	// Settle, if not nil, returns when everything that the host has read from the owner
	// has reached the observer's address, which may be another node's.
	Settle func(context.Context) error
	// Connect replaces client.Connect in tests.
	Connect func(context.Context, client.Endpoint, client.Options) (*client.Conn, error)
}

// Verdict is the result of a rule.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "FAIL"
	Skip Verdict = "skip" // the rule does not apply to this host
)

// Result is a rule and its verdict, with the reason if it did not pass.
type Result struct {
	Group   string  `json:"group"` // plain, client or audience
	Rule    string  `json:"rule"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
}

// Report is the result of Run.
type Report struct {
	Server  string   `json:"server,omitempty"` // the host's name for itself
	Version string   `json:"version"`          // of the protocol
	Marker  bool     `json:"marker"`           // the host takes client-executed terminals
	Results []Result `json:"results"`
}

// Failed reports whether a rule was broken.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Results, func(one Result) bool { return one.Verdict == Fail })
}

// errSkip is wrapped by the errors of rules that do not apply.
var errSkip = errors.New("does not apply")

func skip(why string) error { return fmt.Errorf("%w: %s", errSkip, why) }

// rule is one check. Rules run in the order of their table and build on each other.
type rule struct {
	text  string
	check func(*run) error
}

// run is one run of all checks.
type run struct {
	ctx    context.Context
	opts   Options
	owner  *session // lends
	other  *session // watches
	marker ahp.ClientTerminals
	has    bool // the marker
	uri    string
	ids    [2]string
	text   int64 // bytes of text printed to the terminal so far
}

// Run checks the host. It returns an error and no report if it cannot connect, for
// example because the host refuses the token. If ctx ends, it returns ctx's error, and a
// report in which the remaining rules have failed.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	if o.Connect == nil {
		o.Connect = client.Connect
	}
	if o.Observer.URL == "" {
		o.Observer = o.Endpoint
	}
	r := &run{ctx: ctx, opts: o, ids: [2]string{"conform-" + rand.Text()[:12], "conform-" + rand.Text()[:12]}}
	var err error
	if r.owner, err = r.open(o.Endpoint, r.ids[0], ahp.NewClientMeta()); err != nil {
		return nil, err
	}
	defer func() { r.owner.conn.Close() }() // comesBack replaces the owner
	if r.other, err = r.open(o.Observer, r.ids[1], ahp.NewClientMeta()); err != nil {
		return nil, err
	}
	defer func() { r.other.conn.Close() }()
	result := r.owner.conn.Result()
	r.marker, r.has = ahp.FindClientTerminals(result)
	report := &Report{Version: result.ProtocolVersion, Marker: r.has}
	if result.ServerInfo != nil {
		report.Server = result.ServerInfo.Name + " " + result.ServerInfo.Version
	}
	r.check(report, "plain", plainRules, "")
	switch {
	case o.Plain:
	case r.has, o.Assume:
		r.check(report, "client", clientRules, "")
	default:
		r.check(report, "client", clientRules, "the host does not announce client-executed terminals")
	}
	switch {
	case o.Plain || !r.marker.KeepsAudiences():
	case r.opts.Observer.URL == r.opts.Endpoint.URL && r.opts.Observer.Token == r.opts.Endpoint.Token:
		r.check(report, "audience", audienceRules, "these rules need an observer's token of a person who does not own the machine")
	default:
		r.check(report, "audience", audienceRules, "")
	}
	return report, ctx.Err()
}

// check applies the rules of a table to a new terminal. If none is not "", it skips them
// all for that reason.
func (r *run) check(report *Report, group string, rules []rule, none string) {
	r.uri, r.text = "ahp-terminal:/conform-"+rand.Text(), 0
	for _, one := range rules {
		result := Result{Group: group, Rule: one.text, Verdict: Pass}
		err := error(nil)
		if none != "" {
			err = skip(none)
		} else if err = r.ctx.Err(); err == nil {
			err = one.check(r)
		}
		switch {
		case errors.Is(err, errSkip):
			result.Verdict, result.Why = Skip, err.Error()
		case err != nil:
			result.Verdict, result.Why = Fail, err.Error()
		}
		report.Results = append(report.Results, result)
	}
}

// code returns the JSON-RPC code of an error, 0 if it has none.
func code(err error) jsonrpc.Code {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e.Code
	}
	return 0
}

// wantCode returns an error unless err is a refusal of the request with one of these
// codes.
func wantCode(err error, what string, codes ...jsonrpc.Code) error {
	if err == nil {
		return fmt.Errorf("%s was accepted", what)
	}
	for _, c := range codes {
		if code(err) == c {
			return nil
		}
	}
	return fmt.Errorf("%s was refused with %d (%v), want %d", what, code(err), err, codes)
}
