package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tether/host/admission"
	"tether/host/rights"
	"tether/jsonrpc"
	"tether/mcp"
)

// The memory of clients' messages before they have an effect is bounded over all
// connections: receive buffers, decoded messages, and agents' requests until they are
// answered. Together with sendingBytes, these are 256 MiB with 4,096 connections, of
// which each has a first buffer of 16 KiB.
const (
	receiveBytes = 64 << 20  // bytes: half for buffers of up to 128 KiB, half for longer ones
	decodedBytes = 64 << 20  // estimated bytes of decoded messages
	askedBytes   = 16 << 20  // estimated bytes of agents' requests, until they are answered
	longestAsked = 512 << 10 // bytes of a request over HTTP
	leastCalled  = 16 << 10  // least estimate for a call over a WebSocket; one call of each session is not counted
	mostDecoded  = 32 << 20  // greatest estimate for one message; the tests measure 20 MiB with maxValues
	freeDecoded  = 4 << 10   // bytes up to which a decoded message is not counted: those of 4,096 connections take 16 MiB
	perValue     = 640       // estimated bytes of a decoded value; a tool takes 600
	perText      = 4         // estimated bytes for each byte of a message: it is copied, quoted and unquoted
)

// Data prepared for one connection alone, until it has been read, is bounded over all
// connections, too: answers with snapshots, text that pages show, and resynchronisations
// of subscribers that fell behind.
const (
	sendingBytes = 32 << 20 // bytes
	freeSending  = 4 << 10  // bytes that are not counted: of a snapshot without recorded text
)

// messageMemory has the budgets for these bounds.
type messageMemory struct {
	arrival               time.Duration // see Options.ArrivalTime; set once
	medium, long, decoded budget
	asked                 budget
	sending               budget // by name of the reader
}

func newMessageMemory(arrival time.Duration) *messageMemory {
	const buffers = receiveBytes / 2
	return &messageMemory{arrival: arrival, medium: newBudget(buffers, buffers/4), long: newBudget(buffers, buffers/4), decoded: newBudget(decodedBytes, mostDecoded),
		asked: newBudget(askedBytes, askedBytes/4), sending: newBudget(sendingBytes, sendingBytes/4)}
}

// A budget is a number of bytes that connections share. Each name may take only a part of
// it, so that one name, with any number of connections, cannot make others wait. The
// host's own token has no such bound. The connections of a name are served in order;
// nobody waits behind another name's large message.
//
// A holder of decoded bytes waits for nothing but locks; a connection that waits for
// decoded may hold bytes of medium and long, and one that waits for long those of medium.
// So there is no deadlock.
type budget struct {
	mu      sync.Mutex
	part    int            // bytes that one name has at most; set once
	free    int            // guarded by mu, like the fields below
	used    map[string]int // by name
	waiting []*claim       // oldest first
}

type claim struct {
	name string
	n    int
	done chan struct{} // closed when the claim has been granted; guarded by the budget's lock
}

func newBudget(most, part int) budget {
	return budget{part: part, free: most, used: make(map[string]int)}
}

// take waits until a name has got n more bytes, or ctx ends. n is at most a name's part.
func (b *budget) take(ctx context.Context, name string, n int) error {
	if b.try(name, n) {
		return nil
	}
	c := &claim{name: name, n: n, done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	b.serveLocked()
	b.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else {
		b.freeLocked(name, n)
	}
	b.serveLocked()
	return context.Cause(ctx)
}

// try is take that returns false instead of waiting.
func (b *budget) try(name string, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok := b.fitsLocked(name, n) && !slices.ContainsFunc(b.waiting, func(c *claim) bool { return c.name == name })
	if ok {
		b.takeLocked(name, n)
	}
	return ok
}

// give gives n bytes back.
func (b *budget) give(name string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freeLocked(name, n)
	b.serveLocked()
}

func (b *budget) freeLocked(name string, n int) {
	b.free += n
	if b.used[name] -= n; b.used[name] == 0 {
		delete(b.used, name)
	}
}

func (b *budget) takeLocked(name string, n int) {
	b.free -= n
	b.used[name] += n
}

func (b *budget) fitsLocked(name string, n int) bool {
	return n <= b.free && (name == "" || b.used[name]+n <= b.part)
}

// serveLocked grants the available bytes to waiting connections.
func (b *budget) serveLocked() {
	waits := map[string]bool{} // names
	b.waiting = slices.DeleteFunc(b.waiting, func(c *claim) bool {
		if waits[c.name] || !b.fitsLocked(c.name, c.n) {
			waits[c.name] = true
			return false
		}
		b.takeLocked(c.name, c.n)
		close(c.done)
		return true
	})
}

// recvMemory is one connection's share of the buffers; it implements wsconn.Memory. After
// its creation it belongs to the receiving goroutine.
type recvMemory struct {
	all  *messageMemory
	name string // of the principal
	late func() // ends the connection because a message takes too long to arrive; set before anything is received

	medium, long int         // bytes that it has taken from the budgets
	arriving     *time.Timer // calls late; nil before the first longer message
}

func (h *Host) newRecvMemory(p rights.Principal) *recvMemory {
	return &recvMemory{all: h.messages, name: p.Name}
}

// Reserve implements wsconn.Memory.
func (i *recvMemory) Reserve(ctx context.Context, n int) error {
	from, has := &i.all.medium, &i.medium
	if i.medium > 0 {
		from, has = &i.all.long, &i.long
	}
	n = min(n, from.part)
	if err := from.take(ctx, i.name, n); err != nil {
		return err
	}
	*has = n
	if i.arriving == nil {
		i.arriving = time.AfterFunc(i.all.arrival, i.late)
	} else {
		i.arriving.Reset(i.all.arrival)
	}
	return nil
}

// Arrived implements wsconn.Memory.
func (i *recvMemory) Arrived() { i.arriving.Stop() }

// Release implements wsconn.Memory.
func (i *recvMemory) Release() {
	if i.medium > 0 {
		i.arriving.Stop()
		i.all.medium.give(i.name, i.medium)
	}
	if i.long > 0 {
		i.all.long.give(i.name, i.long)
	}
	i.medium, i.long = 0, 0
}

// decoding waits until a message with these params may be decoded and handled. The caller
// calls done after that.
func (c *conn) decoding(ctx context.Context, params []byte) (done func(), err error) {
	return c.taking(ctx, decodedSize(params))
}

// taking is decoding for a message with an estimate of n bytes.
func (c *conn) taking(ctx context.Context, n int) (done func(), err error) {
	if n <= freeDecoded {
		return func() {}, nil
	}
	b, name := &c.h.messages.decoded, c.remote.principal.Name
	if err := b.take(ctx, name, n); err != nil {
		return nil, err
	}
	return func() { b.give(name, n) }, nil
}

// decodedSize estimates the size of decoded params, in bytes. It counts values by the
// characters before them: each value but the first follows a comma or an opening bracket.
// Colons are not counted, since the value of a member was counted with its name.
func decodedSize(params []byte) int {
	values := 1 + bytes.Count(params, []byte{','}) + bytes.Count(params, []byte{'['}) + bytes.Count(params, []byte{'{'})
	return min(perValue*min(values, maxValues)+perText*len(params), mostDecoded)
}

// A later is a reply with the state of channels. It is built when it can be sent.
type later struct {
	subs   []*subscription
	reply  func()
	since  time.Time // when the client asked for it
	filled bool      // the writer is woken when the wait for other nodes' text is over
}

// roomLocked reports whether there is room for a reply. If there is none, the reply waits
// until a goroutine has got it: connections of the same name that do not read take it,
// and are closed after Options.StallTime. Later replies that need room wait, too.
func (c *conn) roomLocked(l *later) bool {
	if c.asking == l {
		if c.granted == 0 {
			return false
		}
		c.asking, c.answer, c.granted = nil, c.granted, 0
		return true
	}
	n, most := 0, maxSnapshots
	if c.client.resume {
		most = maxLender
	}
	for _, s := range l.subs {
		n += c.shownLocked(s.topic)
	}
	all, name := &c.h.messages.sending, c.remote.principal.Name
	switch n = min(n, most, all.part); {
	case n <= freeSending:
		return true
	case c.asking != nil:
		return false
	case all.try(name, n):
		c.answer = n
		return true
	}
	c.asking = l
	c.h.work.Go(func() { c.awaitRoom(name, n) })
	return false
}

// awaitRoom waits for n bytes, or until the connection ends.
func (c *conn) awaitRoom(name string, n int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-c.peer.Done():
		case <-ctx.Done():
		}
	}()
	err := c.h.messages.sending.take(ctx, name, n)
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	switch {
	case err != nil:
	case c.gone:
		c.h.messages.sending.give(name, n)
	default:
		c.granted = n
		c.Wake()
	}
}

// shownLocked returns about how many bytes an answer with the topic's state takes.
func (c *conn) shownLocked(of topic) int {
	switch {
	case of.term != nil:
		return int(of.term.out.Held())
	case of.session != nil:
		return maxSnapshots
	}
	return perListed * len(c.hold.l.terminals)
}

// perListed is about how many bytes a list of terminals takes for each of them.
const perListed = 512

// resyncingLocked returns how many bytes of text may be prepared for a subscriber that
// fell behind: few if other connections of the name have used up its part.
func (c *conn) resyncingLocked() int {
	n := c.h.opts.LogBytes / 4
	c.caughtUpLocked()
	if n <= freeSending || !c.h.messages.sending.try(c.remote.principal.Name, n) {
		return min(n, freeSending)
	}
	c.resync = n
	return n
}

// sentLocked releases the bytes of the last reply, because everything before has been
// sent.
func (c *conn) sentLocked() {
	if c.answer > 0 {
		c.h.messages.sending.give(c.remote.principal.Name, c.answer)
		c.answer = 0
	}
	if !c.out.CatchingUp() {
		c.caughtUpLocked()
	}
}

// caughtUpLocked releases the bytes of the last resynchronisation.
func (c *conn) caughtUpLocked() {
	if c.resync > 0 {
		c.h.messages.sending.give(c.remote.principal.Name, c.resync)
		c.resync = 0
	}
}

// doneLocked gives back all bytes at the end of the connection.
func (c *conn) doneLocked() {
	c.gone = true
	c.answer, c.granted = c.answer+c.granted, 0
	c.sentLocked()
	c.caughtUpLocked()
}

var (
	errLongRequest = &admission.Refusal{Status: http.StatusRequestEntityTooLarge, Text: "the request is too long, or has too many JSON values, for this host"}
	errHalfRequest = &admission.Refusal{Status: http.StatusBadRequest, Text: "the request has not arrived whole", Quiet: true}
	errManyLong    = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "too many requests of agents are being answered; try again later", Quiet: true}
)

// whole reads an agent's request over HTTP once there is room for it, without decoding
// it. It waits at most as long as a message may take to arrive. The caller calls done
// when the request has been answered.
func (m *messageMemory) whole(w http.ResponseWriter, r *http.Request, name string) (done func(), why *admission.Refusal) {
	n := r.ContentLength
	switch {
	case n >= 0 && n <= freeDecoded:
		return func() {}, nil // the server reads no more of it
	case n > longestAsked:
		return nil, errLongRequest
	case n < 0:
		n = longestAsked
	}
	has := perText * int(n)
	ctx, cancel := context.WithTimeout(r.Context(), m.arrival)
	defer cancel()
	if m.asked.take(ctx, name, has) != nil {
		return nil, errManyLong
	}
	done = func() { m.asked.give(name, has) }
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, n))
	size := decodedSize(body)
	_, tooLong := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err != nil && !tooLong:
		why = errHalfRequest
	case tooLong || size > m.asked.part:
		why = errLongRequest
	case size > has && !m.asked.try(name, size-has):
		why = errManyLong
	default:
		has = max(has, size)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return done, nil
	}
	done()
	return nil, why
}

const codeBusy = -32000 // JSON-RPC: the first that a server may give a meaning of its own

// called takes room for an agent's message over a WebSocket, or returns why there is
// none. It does not wait, because a closed connection would go unnoticed while a message
// waits. The caller calls done when the message has been answered. One short call of a
// session, marked by free, is not counted.
func (m *messageMemory) called(name string, line []byte, free *atomic.Bool) (done func(), why error) {
	if len(line) <= freeDecoded && free.CompareAndSwap(false, true) {
		return func() { free.Store(false) }, nil
	}
	n := max(decodedSize(line), leastCalled)
	switch {
	case n > m.asked.part:
		return nil, &mcp.Refused{Code: int64(jsonrpc.CodeInvalidRequest), Text: errLongRequest.Text}
	case !m.asked.try(name, n):
		return nil, &mcp.Refused{Code: codeBusy, Text: errManyLong.Text}
	}
	return func() { m.asked.give(name, n) }, nil
}

// send waits for memory for an answer of up to that many bytes, and returns for how many
// there is room, until done is called.
func (m *messageMemory) send(ctx context.Context, p rights.Principal, bytes int64) (room int, done func(), err error) {
	n := int(min(bytes, int64(m.sending.part)))
	if err := m.sending.take(ctx, p.Name, n); err != nil {
		return 0, nil, err
	}
	return n, func() { m.sending.give(p.Name, n) }, nil
}
