// Package runs answers questions about earlier runs of lent terminals, which stay at
// their machines. A question goes to each machine with the names by which the machine's
// grants know the reader, and the answers go to the reader as one. Nothing of them is
// kept. Machines at other nodes of a cluster are asked through those nodes.
//
//	r := runs.New(runs.Options{Machines: machines})
//	answer, err := r.Call(ctx, runs.Question{Reader: reader, Tool: "list_runs", Args: args})
package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host/rights"
	"tether/internal/bounded"
	"tether/internal/jsonspan"
	"tether/jsonrpc"
	"tether/screen"
)

// About is the subject of questions between nodes.
const About = "runs"

// MaxShows bounds Question.Shows, in bytes.
const MaxShows = 64 << 10

const (
	askTime    = 15 * time.Second // bounds a question
	atOnce     = 6                // questions of one reader, and questions to one machine
	machines   = 64               // that one question goes to
	maxNode    = 64               // bytes of a node's id
	maxBetween = 900 << 10        // of a node's answer to another one
)

var (
	errMany    = errors.New("too many questions about earlier runs at a time: try again")
	errNoGuest = errors.New("guests see what runs now, and no earlier runs")
)

// Options configure Runs. Machines is required.
type Options struct {
	Machines Machines
	Nodes    Nodes          // the other nodes of the cluster; nil if there are none
	Log      zerolog.Logger // gets no content of runs
}

// Machines are the machines that are connected here. Its methods are called without
// locks, from several goroutines.
type Machines interface {
	// Asked returns the machines that keep runs and may be asked for this reader, by
	// their ids: with q.Terminal, that of the terminal alone, if the reader sees it.
	Asked(q *Question) []Machine
	// Away returns the names of the machines that are not connected and whose terminals
	// the reader sees, in order.
	Away(q *Question) []string
}

// Nodes are the other nodes of a cluster.
type Nodes interface {
	ID() string
	Others() []string
	Ask(ctx context.Context, node, about string, question []byte) ([]byte, error)
}

// Machine is a machine that answers questions.
type Machine struct {
	ID     string
	Name   string // as readers know it
	Peer   *jsonrpc.Peer
	Reader ahp.Reader // who asks, in the words of its grants
}

// Question is a call of a tool about runs.
type Question struct {
	From     string          `json:"from,omitempty"` // the asking node
	Reader   rights.Named    `json:"reader"`
	Steward  bool            `json:"steward,omitempty"`  // the reader is an administrator, with less rights
	Named    string          `json:"named,omitempty"`    // what may be a machine's name in Args
	Terminal string          `json:"terminal,omitempty"` // URI of the lent terminal that the question is about; "" for none
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args"`
	Shows    int             `json:"shows,omitempty"` // bytes of the answer that the reader gets
}

// Principal returns the principal that asks.
func (q *Question) Principal() rights.Principal {
	p := q.Reader.Principal()
	p.Steward = q.Steward
	return p
}

// machineAnswer is what a machine has answered.
type machineAnswer struct {
	Machine string         `json:"machine"`
	Gone    bool           `json:"gone,omitempty"` // it has gone away meanwhile
	Result  ahp.RunsResult `json:"result"`
}

// Runs asks machines for readers. It is safe for concurrent use.
type Runs struct {
	opts  Options
	slots bounded.Slots // of questions under way, by reader and by machine
}

// New returns Runs.
func New(o Options) *Runs { return &Runs{opts: o, slots: bounded.Slots{Each: atOnce}} }

// CallFor is Call for a principal, who becomes the question's reader.
func (r *Runs) CallFor(ctx context.Context, p rights.Principal, q Question) (any, error) {
	if p.Guest != "" || !p.May(rights.See) {
		return nil, errNoGuest
	}
	q.Reader, q.Steward = p.Named(), p.Steward
	return r.Call(ctx, q)
}

// Call returns the answer of the machines that the question is about, here and at other
// nodes: a pointer to the tool's answer in package agenttools. It takes at most 15 s. An
// error is for the reader. The caller sets no field of q for nodes, and Named only with
// Terminal.
func (r *Runs) Call(ctx context.Context, q Question) (any, error) {
	if len(q.Args) > ahp.MaxRunsArguments {
		return nil, fmt.Errorf("the arguments have %d bytes, at most %d are allowed", len(q.Args), ahp.MaxRunsArguments)
	}
	if q.Terminal == "" {
		var err error
		if q.Named, err = machineIn(q.Args); err != nil {
			return nil, err
		}
	}
	q.Shows = min(q.Shows, MaxShows)
	away := r.opts.Machines.Away(&q)
	all, err := r.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	away = slices.DeleteFunc(away, func(name string) bool {
		return slices.ContainsFunc(all, func(m machineAnswer) bool { return m.Machine == name })
	})
	all = slices.DeleteFunc(all, func(m machineAnswer) bool {
		if m.Gone {
			away = append(away, m.Machine)
		}
		return m.Gone
	})
	switch {
	case slices.Contains(away, q.Named):
		return nil, awayError(q.Named)
	case slices.ContainsFunc(all, func(m machineAnswer) bool { return m.Machine == q.Named }) || q.Terminal != "":
		away = nil // it is about another machine
	}
	return merge(q.Tool, all, away)
}

// awayError says that a machine is not connected.
type awayError string

func (e awayError) Error() string {
	return fmt.Sprintf("the machine is away: %s can be asked about earlier runs when it is back", string(e))
}

// ask asks the machines here and at other nodes.
func (r *Runs) ask(ctx context.Context, q Question) ([]machineAnswer, error) {
	done, ok := r.slots.Try("reader " + string(q.Reader.Role) + " " + q.Reader.Name + " " + q.Reader.Owner)
	if !ok {
		return nil, errMany
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var mu sync.Mutex
	var all []machineAnswer
	var asking sync.WaitGroup
	add := func(some []machineAnswer) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, some...)
	}
	if r.opts.Nodes != nil {
		q.From = r.opts.Nodes.ID()
		for _, node := range r.opts.Nodes.Others() {
			asking.Go(func() { add(r.askNode(ctx, node, &q)) })
		}
	}
	add(r.askHere(ctx, &q))
	asking.Wait()
	slices.SortStableFunc(all, func(a, b machineAnswer) int { return cmp.Compare(a.Machine, b.Machine) })
	return all, nil
}

// askNode asks the machines at another node.
func (r *Runs) askNode(ctx context.Context, node string, q *Question) (all []machineAnswer) {
	data, err := json.Marshal(q)
	if err == nil {
		data, err = r.opts.Nodes.Ask(ctx, node, About, data)
	}
	if err == nil {
		err = jsonspan.Unmarshal(data, &all)
	}
	if err != nil {
		r.opts.Log.Debug().Str("node", node).Err(err).Msg("a question about runs was not answered")
		return []machineAnswer{{Machine: "machines at another node", Result: ahp.RunsResult{Error: "its node of the host is not reached"}}}
	}
	return all
}

// AnswerNode answers another node's Question; nil if it is none.
func (r *Runs) AnswerNode(ctx context.Context, question []byte) []byte {
	var q Question
	if jsonspan.Unmarshal(question, &q) != nil || len(q.From) > maxNode {
		return nil
	}
	all := r.askHere(ctx, &q)
	for size := 0; ; size = 0 {
		for i := range all {
			if size += len(all[i].Result.Answer); size > maxBetween*3/4 {
				all[i].Result = ahp.RunsResult{Error: "the answers are too long: ask one machine"}
			}
		}
		data, err := json.Marshal(all)
		if err != nil || len(data) <= maxBetween {
			return data
		}
		all = all[:len(all)/2]
	}
}

// askHere asks the machines here.
func (r *Runs) askHere(ctx context.Context, q *Question) []machineAnswer {
	asked := r.opts.Machines.Asked(q)
	if named := slices.DeleteFunc(slices.Clone(asked), func(m Machine) bool { return m.Name != q.Named }); len(named) > 0 {
		asked = named
	}
	asked = asked[:min(len(asked), machines)]
	all := make([]machineAnswer, len(asked))
	var asking sync.WaitGroup
	for i := range asked {
		asking.Go(func() {
			all[i].Machine = asked[i].Name
			all[i].Result, all[i].Gone = r.askMachine(ctx, &asked[i], q)
		})
	}
	asking.Wait()
	return all
}

// askMachine asks one machine, and reports whether it has gone away meanwhile.
func (r *Runs) askMachine(ctx context.Context, m *Machine, q *Question) (a ahp.RunsResult, gone bool) {
	done, ok := r.slots.Try("machine " + m.ID)
	if !ok {
		return ahp.RunsResult{Error: errMany.Error()}, false
	}
	defer done()
	params := ahp.RunsParams{Channel: q.Terminal, Reader: m.Reader, Tool: q.Tool, Arguments: withoutMachine(q.Args, m.Name), Shows: int64(q.Shows)}
	var raw json.RawMessage
	err := params.Validate()
	if err == nil {
		err = m.Peer.Call(ctx, ahp.MethodRuns, params, &raw)
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
		r.opts.Log.Info().Str("client", m.ID).Err(err).Msg("a question about runs was not answered")
		return ahp.RunsResult{Error: errBadAnswer.Error()}, false
	}
	a.Error = screen.Clean(a.Error)
	return a, false
}

// arguments are the arguments of a call whose names may begin with a machine's, as in
// laptop/dev or laptop/pty-abc.3.
type arguments map[string]json.RawMessage

// each replaces each name by what cut returns for it.
func (a arguments) each(cut func(name string) string) {
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
	a := arguments{}
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
	a := arguments{}
	if len(args) > 0 {
		_ = jsonspan.Unmarshal(args, &a) // was decoded before
	}
	a.each(func(name string) string { return strings.TrimPrefix(name, machine+"/") })
	out, _ := json.Marshal(a) // likewise
	return out
}
