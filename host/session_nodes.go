package host

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
	"tether/host/shells"
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
	// callLost is after how long a call ends for which its node does not ask any more,
	// and after which a node that does not answer is given up.
	callLost = 15 * time.Second
	// maxNodeAnswer bounds what a node answers about tools, and maxNodeCalls how many
	// calls of other nodes' agents are under way.
	maxNodeAnswer = 900 << 10
	maxNodeCalls  = 1024
	// maxNodeID bounds the names of nodes and of calls, in bytes.
	maxNodeID = 64
)

var errNodeCall = errors.New("the machine's node does not answer: it is not known whether the tool has run")

// callKept is how long a call that was given up is remembered, so that a question that
// arrives late does not begin it anew.
const callKept = time.Minute

// nodeTools are the agents and tools at other nodes, as this node knows them. Guarded by
// the host's mutex.
type nodeTools struct {
	lapse  map[string]*time.Timer // forgets the agents of a node that states them no more
	moved  change.Signal          // agents or tools here have changed
	agents map[string][]NodeAgent // at other nodes, by these
	tools  map[string][]nodeOffer // likewise
	calls  map[string]*nodeCall   // of agents at other nodes, by their node and id
}

// NodeAgent is an operator's agent as nodes tell it.
type NodeAgent struct {
	Name  string      `json:"name,omitempty"` // empty: the host's own token
	Role  rights.Role `json:"role"`
	Owner string      `json:"owner,omitempty"`
}

func (a NodeAgent) principal() rights.Principal {
	return rights.Principal{Name: a.Name, Role: a.Role, Owner: a.Owner}
}

// toolsQuestion states which agents a node has, and asks for the tools of machines that
// those may call.
type toolsQuestion struct {
	From   string      `json:"from"`
	Agents []NodeAgent `json:"agents,omitempty"`
	Has    string      `json:"has,omitempty"` // version of the answer that it has
	Hold   int64       `json:"hold"`          // ms for which to wait for another one
}

// toolsAnswer lists what machines offer. Equal lists of tools are there once.
type toolsAnswer struct {
	Version string                 `json:"version"`
	Lists   [][]ahp.ToolDefinition `json:"lists,omitempty"`
	Offers  []nodeOffer            `json:"offers,omitempty"`
}

// nodeOffer is a machine whose tools an agent may call.
type nodeOffer struct {
	Agent   NodeAgent `json:"agent"`
	Client  string    `json:"client"`
	Machine string    `json:"machine"`
	Owner   string    `json:"owner,omitempty"` // of the machine
	List    int       `json:"list"`

	tools []ahp.ToolDefinition
}

// callQuestion asks for the result of a call, which it begins at the first time.
type callQuestion struct {
	From   string          `json:"from"`
	ID     string          `json:"id"`
	Agent  NodeAgent       `json:"agent"`
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

// FollowTools tells a node which agents are here and asks it for the tools that they may
// call, until ctx ends.
func (h *Host) FollowTools(ctx context.Context, node string) {
	if !h.opts.Sessions {
		return
	}
	defer h.toolsOf(node, nil)
	for has := ""; ctx.Err() == nil; {
		h.mu.Lock()
		q := toolsQuestion{From: h.opts.Nodes.ID(), Agents: h.agentsHereLocked(), Has: has, Hold: toolsHold.Milliseconds()}
		moved := h.elsewhere.moved.Next()
		h.mu.Unlock()
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
		data, err := h.askNode(asking, node, AboutTools, q)
		if err == nil {
			err = json.Unmarshal(data, &a)
		}
		failed := err != nil && asking.Err() == nil
		cancel()
		changes.Wait()
		if err == nil && a.Version != has && h.toolsOf(node, &a) {
			has = a.Version
		}
		pause := listedEvery
		if failed { // it does not know the question, or NATS is not reached
			pause = askSlack
		}
		retry.Wait(ctx, pause)
	}
}

func (h *Host) askNode(ctx context.Context, node, about string, question any) ([]byte, error) {
	data, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	return h.opts.Nodes.Ask(ctx, node, about, data)
}

// toolsOf takes over what a node offers to agents here; nil if it is gone.
func (h *Host) toolsOf(node string, a *toolsAnswer) (ok bool) {
	var offers []nodeOffer
	if a != nil {
		for _, o := range a.Offers {
			if o.List < 0 || o.List >= len(a.Lists) || len(o.Client) > ahp.MaxClientID || len(o.Machine) > maxMachine {
				return false
			}
			o.tools = a.Lists[o.List]
			offers = append(offers, o)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.elsewhere.tools == nil {
		h.elsewhere.tools = map[string][]nodeOffer{}
	}
	if h.elsewhere.tools[node] = offers; a == nil {
		delete(h.elsewhere.tools, node)
	}
	h.tellToolsLocked()
	return true
}

// agentsHereLocked are the agents that use this node.
func (h *Host) agentsHereLocked() (all []NodeAgent) {
	for _, s := range h.agentSessions {
		if s.unhook != nil {
			all = append(all, s.agent)
		}
	}
	slices.SortFunc(all, func(a, b NodeAgent) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// agentsOf takes over which agents another node has: each gets a session here, which ends
// when no node has the agent any more.
func (h *Host) agentsOf(node string, agents []NodeAgent) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return
	}
	if h.elsewhere.agents == nil {
		h.elsewhere.agents = map[string][]NodeAgent{}
	}
	if h.elsewhere.agents[node] = agents; len(agents) == 0 {
		delete(h.elsewhere.agents, node)
	}
	stated := map[NodeAgent]bool{}
	for _, all := range h.elsewhere.agents {
		for _, a := range all {
			stated[a] = true
		}
	}
	var procs []shells.Process
	for _, s := range h.agentSessions {
		if s.unhook == nil && !stated[s.agent] {
			procs = append(procs, s.disposeLocked("the agent has gone")...)
		}
	}
	for _, a := range agents {
		if p := a.principal(); h.agentSessions[a.Name] == nil && p.May(rights.Sessions) {
			h.addAgentSessionLocked(p)
		}
	}
	h.mu.Unlock()
	kill(procs)
}

// lapseAgents forgets the agents of a node unless it states them again: one that goes
// away may still have asked after its last word.
func (h *Host) lapseAgents(node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := &h.elsewhere
	switch t := n.lapse[node]; {
	case t != nil:
		t.Reset(callLost)
	case !h.closed && len(n.agents[node]) > 0:
		if n.lapse == nil {
			n.lapse = map[string]*time.Timer{}
		}
		n.lapse[node] = time.AfterFunc(callLost, func() {
			h.mu.Lock()
			delete(n.lapse, node)
			h.mu.Unlock()
			h.agentsOf(node, nil)
		})
	}
}

// AnswerTools answers another node's toolsQuestion.
func (h *Host) AnswerTools(ctx context.Context, question []byte) []byte {
	var q toolsQuestion
	if json.Unmarshal(question, &q) != nil || len(q.From) > maxNodeID || len(q.Agents) > maxAgents {
		return nil
	}
	if h.opts.Sessions {
		h.agentsOf(q.From, q.Agents)
		h.lapseAgents(q.From)
	}
	late := time.NewTimer(time.Duration(min(max(q.Hold, 0), 10_000)) * time.Millisecond)
	defer late.Stop()
	for {
		h.mu.Lock()
		offers, moved := h.toolsForLocked(q.Agents), h.elsewhere.moved.Next()
		h.mu.Unlock()
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

// toolsForLocked are the tools of machines here that agents at another node may call.
// Nobody changes the lists of tools.
func (h *Host) toolsForLocked(agents []NodeAgent) (all []nodeOffer) {
	for _, agent := range agents {
		p := agent.principal()
		for _, o := range h.offersLocked(&p) {
			if o.cl.conn == nil || len(o.cl.id) > ahp.MaxClientID {
				continue // it may be at another node by now
			}
			all = append(all, nodeOffer{Agent: agent, Client: o.cl.id, Machine: o.cl.machineLocked(), Owner: o.cl.principal.Owner, tools: o.tools})
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

// extrasElsewhereLocked are the tools of machines at other nodes for an agent here.
func (h *Host) extrasElsewhereLocked(p rights.Principal) (all []mcp.Extra) {
	for _, node := range slices.Sorted(maps.Keys(h.elsewhere.tools)) { // of tools with equal names, always the same
		for _, o := range h.elsewhere.tools[node] {
			if o.Agent.Name != p.Name || o.Agent.Owner != p.Owner || h.roster.On && o.Owner != p.Owner {
				continue
			}
			for _, t := range o.tools {
				q := callQuestion{Agent: o.Agent, Client: o.Client, Tool: t.Name}
				all = append(all, extra(o.Machine, t, func(ctx context.Context, args json.RawMessage) (string, error) {
					h.audit(rights.AuditCalled, remote{principal: p}, rights.AuditEvent{Client: q.Client, Detail: q.Tool})
					q := q
					q.Args = args
					return h.callAt(ctx, node, q)
				}))
			}
		}
	}
	return all
}

// callAt has another node carry out a call, and waits for the result, until ctx ends:
// then the call does.
func (h *Host) callAt(ctx context.Context, node string, q callQuestion) (string, error) {
	if err := checkArguments(q.Args); err != nil {
		return "", err
	}
	q.From, q.ID, q.Hold = h.opts.Nodes.ID(), rand.Text(), toolsHold.Milliseconds()
	for heard := time.Now(); ; {
		asking, cancel := context.WithTimeout(ctx, toolsHold+askSlack)
		answer, err := h.askNode(asking, node, AboutCall, q)
		cancel()
		switch {
		case ctx.Err() != nil:
			q.Cancel, q.Args = true, nil
			telling, cancel := context.WithTimeout(h.ctx, askSlack)
			defer cancel()
			_, _ = h.askNode(telling, node, AboutCall, q) // else it ends when nobody asks for it
			return "", context.Cause(ctx)
		case errors.Is(err, ErrNoNode) || err != nil && time.Since(heard) > callLost-toolsHold-askSlack:
			return "", errNodeCall
		case err != nil:
			retry.Wait(ctx, listedEvery)
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
func (h *Host) AnswerCall(ctx context.Context, question []byte) []byte {
	var q callQuestion
	if json.Unmarshal(question, &q) != nil || len(q.ID) > maxNodeID || len(q.From) > maxNodeID || !h.opts.Sessions {
		return nil
	}
	c := h.nodeCall(&q)
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
func (h *Host) nodeCall(q *callQuestion) *nodeCall {
	key, p := q.From+" "+q.ID, q.Agent.principal()
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.elsewhere.calls[key]
	switch {
	case c != nil && q.Cancel:
		c.cancel()
		return c
	case c != nil:
		if c.lost.Stop() { // else it was given up
			c.lost.Reset(callLost)
		}
		return c
	case q.Cancel || h.closed || len(h.elsewhere.calls) >= maxNodeCalls || !slices.Contains(h.elsewhere.agents[q.From], q.Agent) || !p.May(rights.Sessions):
		return nil
	}
	var call func(context.Context, json.RawMessage) (string, error)
	for _, o := range h.offersLocked(&p) {
		for _, t := range o.tools {
			if o.cl.id == q.Client && t.Name == q.Tool && call == nil {
				call = h.caller(o, t, p)
			}
		}
	}
	if call == nil {
		return nil
	}
	if h.elsewhere.calls == nil {
		h.elsewhere.calls = map[string]*nodeCall{}
	}
	ctx, cancel := context.WithCancel(h.ctx)
	c = &nodeCall{done: make(chan struct{}), cancel: cancel}
	c.lost = time.AfterFunc(callLost, func() {
		cancel()
		time.AfterFunc(callKept, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.elsewhere.calls, key)
		})
	})
	h.elsewhere.calls[key] = c
	args := q.Args
	h.work.Go(func() {
		defer cancel()
		text, err := call(ctx, args)
		if c.answer = append([]byte{callDone}, text...); err != nil {
			c.answer = append([]byte{callFailed}, err.Error()...)
		}
		close(c.done)
	})
	return c
}
