package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/ahp"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
	"tether/screen"
)

// Earlier runs of lent terminals stay at their machines. A question about them goes to
// the machine, with the names by which the machine's grants know the reader, and the
// answer goes to the reader. Nothing of it is kept here. Machines at other nodes are
// asked through those nodes.

// AboutRuns is the subject of questions between nodes about earlier runs.
const AboutRuns = "runs"

const (
	runsTime    = 15 * time.Second // bounds a question
	runsAtOnce  = 6                // questions of one principal, and questions to one machine
	runsAtMost  = 64               // machines that one question goes to
	maxRunShows = 64 << 10         // bytes of an answer that readers get
)

var (
	errManyRuns = errors.New("too many questions about earlier runs at a time: try again")
	errNoGuest  = errors.New("guests see what runs now, and no earlier runs")
)

// runsQuestion is a question of a principal to machines.
type runsQuestion struct {
	From     string          `json:"from,omitempty"` // the asking node
	Reader   NodeAgent       `json:"reader"`
	Steward  bool            `json:"steward,omitempty"`
	Named    string          `json:"named,omitempty"`    // what may be a machine's name in Args
	Terminal string          `json:"terminal,omitempty"` // URI of the lent terminal that the question is about; "" for none
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args"`
	Shows    int             `json:"shows,omitempty"`
}

// machineRuns is what a machine has answered.
type machineRuns struct {
	Machine string         `json:"machine"`
	Gone    bool           `json:"gone,omitempty"` // it has gone away meanwhile
	Result  ahp.RunsResult `json:"result"`
}

// runsReader is a machine that answers questions about runs, with the reader as it is to
// know them.
type runsReader struct {
	machine string
	channel string
	cl      *client
	conn    *conn
	reader  ahp.Reader
}

// readerLocked returns v in the words of the grants of a machine.
func (h *Host) readerLocked(v *viewer, owner *Principal, withdrawn []Grantee) (r ahp.Reader) {
	add := func(name string, g Grantee) {
		if len(r.Names) < ahp.MaxReaderNames && !slices.Contains(withdrawn, g) && (ahp.Reader{Names: []string{name}}).Validate() == nil {
			r.Names = append(r.Names, name)
		}
	}
	switch {
	case v.isAgent():
		add(ahp.AgentPrefix+v.Name, Grantee{kind: toAgent, name: v.Name, id: v.Owner})
	case v.person != "":
		add(v.person, Grantee{kind: toPerson, id: v.Owner})
	}
	if !v.isAgent() {
		for _, group := range v.groups {
			add(ahp.GroupPrefix+group, Grantee{kind: toGroup, name: group})
		}
	}
	add(ahp.ToEveryone, Grantee{kind: toEveryone})
	r.Owner = !h.roster.On || v.belongs(owner.Owner)
	return r
}

// runsReadersLocked returns the machines here that a question goes to.
func (h *Host) runsReadersLocked(p Principal, q *runsQuestion) (all []runsReader) {
	v := h.viewerLocked(p)
	withdrawn := map[*client][]Grantee{}
	var about *client
	for t := range h.everyLocked() {
		withdrawn[t.creator] = append(withdrawn[t.creator], t.withdrawn...)
		if q.Terminal != "" && t.uri == q.Terminal {
			if _, ok := h.seesLocked(&v, t); ok {
				about = t.creator
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(h.clients)) {
		cl := h.clients[id]
		machine := cl.machineLocked()
		if cl.conn == nil || cl.conn.closing || !cl.runs || q.Terminal != "" && cl != about {
			continue
		}
		all = append(all, runsReader{machine, q.Terminal, cl, cl.conn, h.readerLocked(&v, &cl.principal, withdrawn[cl])})
	}
	if named := slices.DeleteFunc(slices.Clone(all), func(r runsReader) bool { return r.machine != q.Named }); len(named) > 0 {
		all = named
	}
	return all[:min(len(all), runsAtMost)]
}

// runsHere asks the machines here.
func (h *Host) runsHere(ctx context.Context, p Principal, q *runsQuestion) []machineRuns {
	h.mu.Lock()
	readers := h.runsReadersLocked(p, q)
	h.mu.Unlock()
	all := make([]machineRuns, len(readers))
	var asking sync.WaitGroup
	for i, r := range readers {
		asking.Go(func() {
			all[i].Machine = r.machine
			all[i].Result, all[i].Gone = h.askMachine(ctx, &r, q)
		})
	}
	asking.Wait()
	return all
}

// askMachine asks one machine, and reports whether it has gone away meanwhile.
func (h *Host) askMachine(ctx context.Context, r *runsReader, q *runsQuestion) (a ahp.RunsResult, gone bool) {
	done, ok := h.runAsks.Try("machine " + r.cl.id)
	if !ok {
		return ahp.RunsResult{Error: errManyRuns.Error()}, false
	}
	defer done()
	params := ahp.RunsParams{Channel: r.channel, Reader: r.reader, Tool: q.Tool, Arguments: withoutMachine(q.Args, r.machine), Shows: int64(q.Shows)}
	var raw json.RawMessage
	err := params.Validate()
	if err == nil {
		err = r.conn.peer.Call(ctx, ahp.MethodRuns, params, &raw)
	}
	if err == nil {
		err = ahp.DecodeParams(raw, &a)
	}
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case ok:
		return ahp.RunsResult{Error: screen.Clean(refused.Message)}, false
	case errors.Is(err, jsonrpc.ErrClosed):
		return a, true
	case err != nil:
		h.log.Info().Str("client", r.cl.id).Err(err).Msg("a question about runs was not answered")
		return ahp.RunsResult{Error: errBadRuns.Error()}, false
	}
	a.Error = screen.Clean(a.Error)
	return a, false
}

// AnswerRuns answers another node's runsQuestion.
func (h *Host) AnswerRuns(ctx context.Context, question []byte) []byte {
	var q runsQuestion
	if jsonspan.Unmarshal(question, &q) != nil || len(q.From) > maxNodeID {
		return nil
	}
	p := q.Reader.principal()
	p.steward = q.Steward
	all := h.runsHere(ctx, p, &q)
	for size := 0; ; size = 0 {
		for i := range all {
			if size += len(all[i].Result.Answer); size > maxNodeAnswer*3/4 {
				all[i].Result = ahp.RunsResult{Error: "the answers are too long: ask one machine"}
			}
		}
		data, err := json.Marshal(all)
		if err != nil || len(data) <= maxNodeAnswer {
			return data
		}
		all = all[:len(all)/2]
	}
}

// askRuns asks the machines that the question is about, here and at other nodes.
func (h *Host) askRuns(ctx context.Context, p Principal, q runsQuestion) ([]machineRuns, error) {
	if p.Guest != "" || !p.may(rightSee) {
		return nil, errNoGuest
	}
	done, ok := h.runAsks.Try("reader " + p.Key())
	if !ok {
		return nil, errManyRuns
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, runsTime)
	defer cancel()
	q.Reader, q.Steward = NodeAgent{p.Name, p.Role, p.Owner}, p.steward
	var mu sync.Mutex
	var all []machineRuns
	var asking sync.WaitGroup
	add := func(some []machineRuns) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, some...)
	}
	if h.opts.Nodes != nil {
		q.From = h.opts.Nodes.ID()
		for _, node := range h.opts.Nodes.Others() {
			asking.Go(func() {
				var some []machineRuns
				data, err := h.askNode(ctx, node, AboutRuns, q)
				if err == nil {
					err = jsonspan.Unmarshal(data, &some)
				}
				if err != nil {
					h.log.Debug().Str("node", node).Err(err).Msg("a question about runs was not answered")
					some = []machineRuns{{Machine: "machines at another node", Result: ahp.RunsResult{Error: nodeNotReached}}}
				}
				add(some)
			})
		}
	}
	add(h.runsHere(ctx, p, &q))
	asking.Wait()
	slices.SortStableFunc(all, func(a, b machineRuns) int { return cmp.Compare(a.Machine, b.Machine) })
	return all, nil
}

// machinesAway are the names of the machines that are not connected and whose terminals
// the principal sees, in order.
func (h *Host) machinesAway(p Principal) (away []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.viewerLocked(p)
	for t := range h.everyLocked() {
		if name := t.creator.machineLocked(); t.isAwayLocked() && !slices.Contains(away, name) {
			if _, ok := h.seesLocked(&v, t); ok {
				away = append(away, name)
			}
		}
	}
	slices.Sort(away)
	return away
}

// CallRuns implements agenttools.FarKeeper.
func (w *watched) CallRuns(ctx context.Context, tool string, args json.RawMessage, shows int) (any, error) {
	w.h.audit(AuditCalled, remote{principal: w.p}, AuditEvent{Detail: tool})
	return w.h.callRuns(ctx, w.p, runsQuestion{Tool: tool, Args: args, Shows: min(shows, maxRunShows)})
}

// callRuns carries out a call of a tool of runs for a principal.
func (h *Host) callRuns(ctx context.Context, p Principal, q runsQuestion) (any, error) {
	if len(q.Args) > ahp.MaxRunsArguments {
		return nil, fmt.Errorf("the arguments have %d bytes, at most %d are allowed", len(q.Args), ahp.MaxRunsArguments)
	}
	if q.Terminal == "" {
		var err error
		if q.Named, err = machineIn(q.Args); err != nil {
			return nil, err
		}
	}
	away := h.machinesAway(p)
	all, err := h.askRuns(ctx, p, q)
	if err != nil {
		return nil, err
	}
	away = slices.DeleteFunc(away, func(name string) bool {
		return slices.ContainsFunc(all, func(m machineRuns) bool { return m.Machine == name })
	})
	all = slices.DeleteFunc(all, func(m machineRuns) bool {
		if m.Gone {
			away = append(away, m.Machine)
		}
		return m.Gone
	})
	switch {
	case slices.Contains(away, q.Named):
		return nil, awayError(q.Named)
	case slices.ContainsFunc(all, func(m machineRuns) bool { return m.Machine == q.Named }) || q.Terminal != "":
		away = nil // it is about another machine
	}
	return mergeRuns(q.Tool, all, away)
}

// awayError says that a machine is not connected.
type awayError string

func (e awayError) Error() string {
	return fmt.Sprintf("the machine is away: %s can be asked about earlier runs when it is back", string(e))
}

// pastArgs are the arguments of tools of runs that may begin with a machine's name, as in
// laptop/dev or laptop/pty-abc.3.
type pastArgs map[string]json.RawMessage

// each replaces each name in the arguments by what cut returns for it.
func (a pastArgs) each(cut func(name string) string) {
	for _, key := range []string{"run", "name", "with"} {
		var name string
		if jsonspan.Unmarshal(a[key], &name) == nil && name != "" {
			a[key], _ = json.Marshal(cut(name)) // a string
		}
	}
	var names []string
	if jsonspan.Unmarshal(a["names"], &names) == nil && len(names) > 0 {
		for i := range names {
			names[i] = cut(names[i])
		}
		a["names"], _ = json.Marshal(names) // strings
	}
}

// machineIn returns what may be a machine's name in the arguments, "" if there is none.
func machineIn(args json.RawMessage) (machine string, err error) {
	a := pastArgs{}
	if len(args) > 0 {
		err = jsonspan.Unmarshal(args, &a)
	}
	a.each(func(name string) string {
		if of, _, ok := strings.Cut(name, "/"); ok {
			machine = cmp.Or(machine, of)
		}
		return name
	})
	return machine, err
}

// withoutMachine returns the arguments as the machine of that name is to get them.
func withoutMachine(args json.RawMessage, machine string) json.RawMessage {
	a := pastArgs{}
	if len(args) > 0 {
		_ = jsonspan.Unmarshal(args, &a) // was decoded before
	}
	a.each(func(name string) string { return strings.TrimPrefix(name, machine+"/") })
	out, _ := json.Marshal(a) // likewise
	return out
}
