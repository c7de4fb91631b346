package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"tether/ahp"
	"tether/host/rights"
	"tether/internal/change"
	"tether/internal/retry"
	"tether/mcp"
)

// Agents call the tools of machines at other nodes through those nodes. Each node tells
// every other one which operators' agents it has. There each of them gets a session, too,
// in which that node's machines publish their tools; the answer has these. A call is
// carried out in that session, by the node at which the machine is, and asked for again
// and again until it is over: who asks no more waits no more.

// Subjects of questions between nodes about tools, see Nodes.Ask.
const (
	AboutTools = "tools"
	AboutCall  = "call"
)

const (
	// toolsHold is how long a node waits for other tools before it answers that there are
	// none, and askSlack how much longer an answer may take.
	toolsHold = 5 * time.Second
	askSlack  = time.Second
	// askEvery is the shortest time between two questions to one node.
	askEvery = 50 * time.Millisecond
	// callLost is after how long a call ends for which its node does not ask any more,
	// and after which a node that does not answer is given up.
	callLost = 15 * time.Second
	// maxNodeAnswer bounds what a node answers, in bytes, and maxNodeCalls how many calls
	// of other nodes' agents are under way.
	maxNodeAnswer = 900 << 10
	maxNodeCalls  = 1024
	// maxNodeID bounds the names of nodes and of calls, in bytes.
	maxNodeID = 64
)

var errNodeCall = errors.New("the machine's node does not answer: it is not known whether the tool has run")

// callKept is how long a call that was given up is remembered, so that a question that
// arrives late does not begin it anew.
const callKept = time.Minute

// Nodes are the other nodes of the host.
type Nodes interface {
	// ID is the name of this node.
	ID() string
	// Ask asks a node about a subject, and returns its answer. ctx must have a deadline.
	// The error is ErrNoNode if there is no such node any more.
	Ask(ctx context.Context, node, about string, question []byte) ([]byte, error)
}

// ErrNoNode means that the node is gone.
var ErrNoNode = errors.New("host: there is no such node")

// elsewhere has the agents and tools at other nodes, as this node knows them.
type elsewhere struct {
	moved  change.Signal             // agents or tools here have changed
	lapse  map[string]*time.Timer    // forgets the agents of a node that states them no more
	agents map[string][]rights.Named // at other nodes, by these
	tools  map[string][]nodeOffer    // likewise
	calls  map[string]*nodeCall      // of agents at other nodes, by their node and id
}

func newElsewhere() elsewhere {
	return elsewhere{lapse: map[string]*time.Timer{}, agents: map[string][]rights.Named{}, tools: map[string][]nodeOffer{}, calls: map[string]*nodeCall{}}
}

// toolsQuestion states which agents a node has, and asks for the tools of machines that
// those may call.
type toolsQuestion struct {
	From   string         `json:"from"`
	Agents []rights.Named `json:"agents,omitempty"`
	Has    string         `json:"has,omitempty"` // version of the answer that it has
	Hold   int64          `json:"hold"`          // ms for which to wait for another one
}

// toolsAnswer lists what machines offer. Equal lists of tools are there once.
type toolsAnswer struct {
	Version string                 `json:"version"`
	Lists   [][]ahp.ToolDefinition `json:"lists,omitempty"`
	Offers  []nodeOffer            `json:"offers,omitempty"`
}

// nodeOffer is a machine whose tools an agent may call.
type nodeOffer struct {
	Agent   rights.Named `json:"agent"`
	Client  string       `json:"client"`
	Machine string       `json:"machine"`
	Owner   string       `json:"owner,omitempty"` // of the machine
	List    int          `json:"list"`

	tools []ahp.ToolDefinition
}

// callQuestion asks for the result of a call, which it begins at the first time.
type callQuestion struct {
	From   string          `json:"from"`
	ID     string          `json:"id"`
	Agent  rights.Named    `json:"agent"`
	Client string          `json:"client"`
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args,omitempty"`
	Hold   int64           `json:"hold"` // ms for which to wait for the result
	Cancel bool            `json:"cancel,omitempty"`
}

// The first byte of the answer to a callQuestion. Text follows.
const (
	callRuns   = 'R'
	callDone   = 'D'
	callFailed = 'F'
)

// nodeCall is a call for an agent at another node. Guarded by the host's mutex but for
// answer, which is read when done is closed.
type nodeCall struct {
	done   chan struct{}
	answer []byte
	cancel context.CancelFunc
	lost   *time.Timer
}

// Follow tells a node which agents are here and asks it for the tools that they may
// call, until ctx ends.
func (g *Agents) Follow(ctx context.Context, node string) {
	if g.b.o.Max == 0 {
		return
	}
	defer g.toolsOf(node, nil)
	for has := ""; ctx.Err() == nil; {
		g.b.o.Lock.Lock()
		q := toolsQuestion{From: g.o.Nodes.ID(), Agents: g.here(), Has: has, Hold: toolsHold.Milliseconds()}
		moved := g.moved.Next()
		g.b.o.Lock.Unlock()
		asking, cancel := context.WithTimeout(ctx, toolsHold+askSlack)
		var changes sync.WaitGroup
		changes.Go(func() {
			select {
			case <-moved: // it is to know at once
				cancel()
			case <-asking.Done():
			}
		})
		var a toolsAnswer
		data, err := g.askNode(asking, node, AboutTools, q)
		if err == nil {
			err = json.Unmarshal(data, &a)
		}
		failed := err != nil && asking.Err() == nil
		cancel()
		changes.Wait()
		if err == nil && a.Version != has && g.toolsOf(node, &a) {
			has = a.Version
		}
		pause := askEvery
		if failed { // it does not know the question, or NATS is not reached
			pause = askSlack
		}
		retry.Wait(ctx, pause)
	}
}

func (g *Agents) askNode(ctx context.Context, node, about string, question any) ([]byte, error) {
	data, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	return g.o.Nodes.Ask(ctx, node, about, data)
}

// toolsOf takes over what a node offers to agents here; nil if it is gone.
func (g *Agents) toolsOf(node string, a *toolsAnswer) (ok bool) {
	var offers []nodeOffer
	if a != nil {
		for _, o := range a.Offers {
			if o.List < 0 || o.List >= len(a.Lists) || len(o.Client) > ahp.MaxClientID || len(o.Machine) > MaxMachine {
				return false
			}
			o.tools = a.Lists[o.List]
			offers = append(offers, o)
		}
	}
	g.b.o.Lock.Lock()
	defer g.b.o.Lock.Unlock()
	if g.tools[node] = offers; a == nil {
		delete(g.tools, node)
	}
	g.sync()
	return true
}

// here are the agents that use this node.
func (g *Agents) here() (all []rights.Named) {
	for _, s := range g.sessions {
		if s.unhook != nil {
			all = append(all, s.agent)
		}
	}
	slices.SortFunc(all, func(a, b rights.Named) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Forget is called when a node is gone: its agents have ended.
func (g *Agents) Forget(node string) { g.agentsOf(node, nil) }

// agentsOf takes over which agents another node has: each gets a session here, which ends
// when no node has the agent any more.
func (g *Agents) agentsOf(node string, agents []rights.Named) {
	g.b.o.Lock.Lock()
	if g.b.closed {
		g.b.o.Lock.Unlock()
		return
	}
	if g.agents[node] = agents; len(agents) == 0 {
		delete(g.agents, node)
	}
	stated := map[rights.Named]bool{}
	for _, all := range g.agents {
		for _, a := range all {
			stated[a] = true
		}
	}
	var killed []Shell
	for _, s := range g.sessions {
		if s.unhook == nil && !stated[s.agent] {
			killed = append(killed, s.dispose("the agent has gone")...)
		}
	}
	for _, a := range agents {
		if p := a.Principal(); g.sessions[a.Name] == nil && p.May(rights.Sessions) {
			g.add(p)
		}
	}
	g.b.o.Lock.Unlock()
	Kill(killed)
}

// lapseAgents forgets the agents of a node unless it states them again: one that goes
// away may still have asked after its last word.
func (g *Agents) lapseAgents(node string) {
	g.b.o.Lock.Lock()
	defer g.b.o.Lock.Unlock()
	switch t := g.lapse[node]; {
	case t != nil:
		t.Reset(callLost)
	case !g.b.closed && len(g.agents[node]) > 0:
		g.lapse[node] = time.AfterFunc(callLost, func() {
			g.b.o.Lock.Lock()
			delete(g.lapse, node)
			g.b.o.Lock.Unlock()
			g.agentsOf(node, nil)
		})
	}
}

// AnswerTools answers another node's toolsQuestion.
func (g *Agents) AnswerTools(ctx context.Context, question []byte) []byte {
	var q toolsQuestion
	if json.Unmarshal(question, &q) != nil || len(q.From) > maxNodeID || len(q.Agents) > MaxAgents {
		return nil
	}
	if g.b.o.Max > 0 {
		g.agentsOf(q.From, q.Agents)
		g.lapseAgents(q.From)
	}
	late := time.NewTimer(time.Duration(min(max(q.Hold, 0), 10_000)) * time.Millisecond)
	defer late.Stop()
	for {
		g.b.o.Lock.Lock()
		offers, moved := g.toolsFor(q.Agents), g.moved.Next()
		g.b.o.Lock.Unlock()
		a := listTools(offers)
		data := a.encode()
		if a.Version == q.Has {
			select {
			case <-moved:
				continue
			case <-late.C:
			case <-ctx.Done():
			}
		}
		return data
	}
}

// encode sets the version and encodes the answer. It leaves out what does not fit.
func (a *toolsAnswer) encode() []byte {
	for {
		a.Version = ""
		data, _ := json.Marshal(a) // has been decoded before
		if len(data) > maxNodeAnswer {
			a.Offers = a.Offers[:len(a.Offers)/2]
			most := 0
			for _, o := range a.Offers {
				most = max(most, o.List+1)
			}
			a.Lists = a.Lists[:most]
			continue
		}
		sum := sha256.Sum256(data)
		a.Version = hex.EncodeToString(sum[:16])
		data, _ = json.Marshal(a) // likewise
		return data
	}
}

// toolsFor are the tools of machines here that agents at another node may call.
// Nobody changes the lists of tools.
func (g *Agents) toolsFor(agents []rights.Named) (all []nodeOffer) {
	for _, agent := range agents {
		p := agent.Principal()
		for _, o := range g.offers(&p) {
			if o.cl.Conn() == nil || len(o.cl.ID()) > ahp.MaxClientID {
				continue // it may be at another node by now
			}
			all = append(all, nodeOffer{Agent: agent, Client: o.cl.ID(), Machine: o.cl.Machine(), Owner: o.cl.Principal().Owner, tools: o.tools})
		}
	}
	return all
}

// listTools makes an answer of offers, with equal lists of tools once.
func listTools(offers []nodeOffer) (a toolsAnswer) {
	lists := map[string]int{}
	for _, o := range offers {
		raw, _ := json.Marshal(o.tools) // decoded values can be encoded
		list, known := lists[string(raw)]
		if !known {
			list = len(a.Lists)
			lists[string(raw)] = list
			a.Lists = append(a.Lists, o.tools)
		}
		o.List = list
		a.Offers = append(a.Offers, o)
	}
	return a
}

// extrasElsewhere are the tools of machines at other nodes for an agent here.
func (g *Agents) extrasElsewhere(p rights.Principal) (all []mcp.Extra) {
	for _, node := range slices.Sorted(maps.Keys(g.tools)) { // of tools with equal names, always the same
		for _, o := range g.tools[node] {
			if o.Agent.Name != p.Name || o.Agent.Owner != p.Owner || g.b.o.Audiences() && o.Owner != p.Owner {
				continue
			}
			for _, t := range o.tools {
				q := callQuestion{Agent: o.Agent, Client: o.Client, Tool: t.Name}
				all = append(all, extra(o.Machine, t, func(ctx context.Context, args json.RawMessage) (string, error) {
					g.b.o.Audit(rights.AuditCalled, p, rights.AuditEvent{Client: q.Client, Detail: q.Tool})
					q := q
					q.Args = args
					return g.callAt(ctx, node, q)
				}))
			}
		}
	}
	return all
}

// callAt has another node carry out a call, and waits for the result, until ctx ends:
// then the call does.
func (g *Agents) callAt(ctx context.Context, node string, q callQuestion) (string, error) {
	if err := checkArguments(q.Args); err != nil {
		return "", err
	}
	q.From, q.ID, q.Hold = g.o.Nodes.ID(), rand.Text(), toolsHold.Milliseconds()
	for heard := time.Now(); ; {
		asking, cancel := context.WithTimeout(ctx, toolsHold+askSlack)
		answer, err := g.askNode(asking, node, AboutCall, q)
		cancel()
		switch {
		case ctx.Err() != nil:
			q.Cancel, q.Args = true, nil
			telling, cancel := context.WithTimeout(g.b.o.Context, askSlack)
			defer cancel()
			_, _ = g.askNode(telling, node, AboutCall, q) // else it ends when nobody asks for it
			return "", context.Cause(ctx)
		case errors.Is(err, ErrNoNode) || err != nil && time.Since(heard) > callLost-toolsHold-askSlack:
			return "", errNodeCall
		case err != nil:
			retry.Wait(ctx, askEvery)
			continue
		case len(answer) == 0:
			return "", ErrNoTool
		}
		heard = time.Now()
		switch text := string(answer[1:]); answer[0] {
		case callDone:
			return text, nil
		case callFailed:
			return "", errors.New(text)
		}
	}
}

// AnswerCall answers another node's callQuestion.
func (g *Agents) AnswerCall(ctx context.Context, question []byte) []byte {
	var q callQuestion
	if json.Unmarshal(question, &q) != nil || len(q.ID) > maxNodeID || len(q.From) > maxNodeID || g.b.o.Max == 0 {
		return nil
	}
	c := g.nodeCall(&q)
	if c == nil {
		return append([]byte{callFailed}, ErrNoTool.Error()...)
	}
	late := time.NewTimer(time.Duration(min(max(q.Hold, 0), 10_000)) * time.Millisecond)
	defer late.Stop()
	select {
	case <-c.done:
		return c.answer
	case <-late.C:
	case <-ctx.Done():
	}
	return []byte{callRuns}
}

// nodeCall is the call that a question is about, which is begun if it is new; nil if it
// cannot be.
func (g *Agents) nodeCall(q *callQuestion) *nodeCall {
	key, p := q.From+" "+q.ID, q.Agent.Principal()
	g.b.o.Lock.Lock()
	defer g.b.o.Lock.Unlock()
	c := g.calls[key]
	switch {
	case c != nil && q.Cancel:
		c.cancel()
		return c
	case c != nil:
		if c.lost.Stop() { // else it was given up
			c.lost.Reset(callLost)
		}
		return c
	case q.Cancel || g.b.closed || len(g.calls) >= maxNodeCalls || !slices.Contains(g.agents[q.From], q.Agent) || !p.May(rights.Sessions):
		return nil
	}
	var call func(context.Context, json.RawMessage) (string, error)
	for _, o := range g.offers(&p) {
		for _, t := range o.tools {
			if o.cl.ID() == q.Client && t.Name == q.Tool && call == nil {
				call = g.caller(o, t, p)
			}
		}
	}
	if call == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(g.b.o.Context)
	c = &nodeCall{done: make(chan struct{}), cancel: cancel}
	c.lost = time.AfterFunc(callLost, func() {
		cancel()
		time.AfterFunc(callKept, func() {
			g.b.o.Lock.Lock()
			defer g.b.o.Lock.Unlock()
			delete(g.calls, key)
		})
	})
	g.calls[key] = c
	args := q.Args
	g.b.o.Go(func() {
		defer cancel()
		text, err := call(ctx, args)
		if c.answer = append([]byte{callDone}, text...); err != nil {
			c.answer = append([]byte{callFailed}, err.Error()...)
		}
		close(c.done)
	})
	return c
}
