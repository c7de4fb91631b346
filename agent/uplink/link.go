package uplink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"tether/agent/term"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/change"
	"tether/jsonrpc"
	"tether/vocab"
)

// Options configures a Link. Name, Endpoint, ClientID and Terminals are required.
type Options struct {
	Name     string // of the host, as the person calls it
	Endpoint client.Endpoint
	// ClientID is stable per installation and host; the host ties claims to it.
	ClientID string
	// Terminals is the pool as this host may see it: term.Pool.As(term.Host(Name)).
	Terminals term.Access
	// Version of this program, shown to the host.
	Version string
	// Machine is the name of this machine, shown to the host so that people and agents
	// there can tell machines apart; "" shows none.
	Machine string
	// AssumeClientTerminals lends to a host that sends no marker, because it implements
	// the bare proposal. The check after an announcement stays.
	AssumeClientTerminals bool
	// Anew lends every terminal under another URI, because the clientId for which an
	// earlier link announced it is no longer ours.
	Anew bool
	// OnDispose is the effect of a disposal by the host; "" means auto.
	OnDispose term.OnDispose
	// Tools, if not nil, answers calls of this machine's tools that come from the host's
	// sessions.
	Tools Tools
	// HostGrants accepts grants of the host's administrators for terminals of this
	// machine.
	HostGrants bool
	// Park bounds how long the host may keep terminals for its own interfaces while this
	// machine is away; 0: not at all.
	Park time.Duration
	// Watched, if not nil, is called with a terminal's watchers whenever the host reports
	// them, and without any when the connection has ended. It must not block.
	Watched func(term.ID, []vocab.Watcher)
	// Checkout, if not nil, returns the git work tree that a terminal's directory shows,
	// for the host: the zero value if there is none or the host must not know it. It must
	// not block for long.
	Checkout func(dir string) vocab.Checkout
	// Runs, if not nil, answers the host's questions about what terminals have printed
	// before. It returns soon after ctx has ended.
	Runs func(ctx context.Context, q Asked) ahp.RunsResult
	// Ports, if not nil, serves the host's requests for lent ports, as HTTP/2, each for a
	// terminal that is lent there. It returns soon after the request's context has ended,
	// which the end of the connection does.
	Ports func(w http.ResponseWriter, r *http.Request, id term.ID)
	// Heartbeat is the time between pings, default 15 s. A link whose ping is not
	// answered within one Heartbeat is given up.
	Heartbeat time.Duration
	// DialTimeout bounds dialling and the handshake together, default 15 s. The first
	// five attempts after a loss are bounded by 2.5 to 5 s.
	DialTimeout time.Duration
	// Up, if not nil, is called by the link's goroutine each time the host has accepted a
	// connection.
	Up func()
	// Connect replaces client.Connect in tests.
	Connect func(context.Context, client.Endpoint, client.Options) (*client.Conn, error)
	Logger  *zerolog.Logger // nil means silence
}

// Tools handles the host's sessions; package toolcall's Desk implements it. Serve is
// called for one connection after the other and returns when ctx or the connection ends.
// Subscriptions returns the channels that Serve followed on the last connection: a client
// that reconnects loses those for which it does not ask again. Envelope and Notification
// are called on a connection's read goroutine for messages that concern no terminal of
// ours; they must not block.
type Tools interface {
	Serve(ctx context.Context, conn *client.Conn)
	Subscriptions() []string
	Envelope(v ahp.EnvelopeView)
	Notification(method string, params []byte)
}

// Link is the connection to one host. Run keeps it up.
//
// Goroutines: Run's caller connects and waits between attempts; for each connection a
// session runs, with one publisher per lent terminal.
type Link struct {
	opts Options // set at construction
	log  zerolog.Logger

	nudge chan struct{}  // 1 slot: try again now
	part  chan struct{}  // closed by Withdraw
	ends  sync.WaitGroup // disposals under way; they may outlive the connection
	moves moves
	used  *rate.Limiter // see newUsed

	mu        sync.Mutex
	status    Status
	lendings  map[term.ID]*lending
	retired   []string              // URIs that the host may have and that are not lent any more
	withdrawn map[term.ID]string    // the last URI of each withdrawn terminal that ran on, for lend
	replaced  map[term.ID]string    // with Anew, the URIs under which an earlier link announced terminals
	leaving   int                   // withdrawals under way
	kept      map[term.ID]time.Time // until when the host may keep terminals while this machine is away; empty while it is connected
	session   *session              // the connected one, nil if there is none
	announced change.Signal         // a terminal was announced, or the host was told who may watch one
	resume    *resumption           // how to continue the last connection, nil if there is none
	left      time.Time             // when the last connection ended
}

// resumption is the state of the former connection that `reconnect` needs.
type resumption struct {
	initial ahp.InitializeResult
	lastSeq int64
}

// New returns a link that does nothing until Run.
func New(o Options) *Link {
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	o.DialTimeout = cmp.Or(o.DialTimeout, 15*time.Second)
	o.OnDispose = cmp.Or(o.OnDispose, term.DisposeAuto)
	if o.Connect == nil {
		o.Connect = client.Connect
	}
	l := &Link{opts: o, log: zerolog.Nop(), lendings: map[term.ID]*lending{}, withdrawn: map[term.ID]string{}, nudge: make(chan struct{}, 1), part: make(chan struct{}), used: newUsed()}
	if o.Logger != nil {
		l.log = o.Logger.With().Str("host", o.Name).Logger()
	}
	if o.Anew {
		l.replaced = map[term.ID]string{}
		for _, h := range o.Terminals.List() {
			l.replaced[h.ID()] = h.LinkState()
		}
	}
	l.kept = keptBefore(&l.opts)
	l.status = Status{Name: o.Name, URL: o.Endpoint.URL, State: StateConnecting, Since: time.Now(), DownSince: time.Now()}
	return l
}

// Run keeps the link up until ctx ends, and returns ctx's error. By then it has closed
// the connection and carried out the host's disposals; other terminals continue.
func (l *Link) Run(ctx context.Context) error {
	defer l.ends.Wait()
	var retry backoff
	losses := 0 // consecutive losses of short connections
	_, moves := l.moves.wait()
	for {
		l.setState(StateConnecting, nil, time.Time{})
		began := time.Now()
		err := l.connect(ctx, retry.timeout(l.opts.DialTimeout))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		lost := l.Status().State == StateOnline
		if lost {
			retry.lost()
		}
		short := time.Since(began) < shortLived
		if last := l.opts.Endpoint.Last; last != nil && short {
			last.Store(new(string)) // the next address may have another result
		}
		switch {
		case !short:
			losses = 0
		case lost:
			losses++
		}
		moved, now := l.moves.wait()
		if now != moves || time.Since(began) > healthyAfter {
			retry, moves = backoff{}, now
		}
		state := stateFor(err)
		wait := retry.next(l.retryProfile(state))
		if lost && len(l.opts.Endpoint.Also) > 0 && losses <= maxLosses {
			wait = min(wait, rand.N(firstEager)) // another node may be up
		}
		if errors.Is(err, errWrongTarget) {
			wait, moved = wrongTargetRetry, nil
		}
		l.setState(state, err, time.Now().Add(wait))
		l.log.Warn().Err(shownError{err}).Str("state", string(state)).Dur("retry", wait).Msg("link down")
		select {
		case <-time.After(wait):
		case <-moved:
			retry = backoff{}
			moves++
		case <-l.nudge:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const (
	// shortLived is how long a connection must last so that its address is tried first
	// again, and so that after its loss another address is tried at once.
	shortLived = 5 * time.Second
	// maxLosses is how many shorter connections in a row may be lost while another
	// address is still tried at once: when nodes are replaced, or die, one after the
	// other, a machine loses a few connections.
	maxLosses = 8
)

// retryProfile returns how soon to try again in a state.
func (l *Link) retryProfile(s State) retryProfile {
	switch {
	case s.patient():
		return patient
	case l.moves.recent():
		return eager
	}
	return usual
}

// Moved says that the machine has slept or its network has changed. A connection is
// probed at once. Without a connection, the next attempt starts now, an attempt under way
// is soon replaced by another one, and the pauses between attempts are short for a
// minute. Moved does not block.
func (l *Link) Moved() { l.moves.note() }

// Nudge ends the pause before the next attempt, because the person asked for it.
func (l *Link) Nudge() {
	change.Wake(l.nudge)
}

// Withdraw makes the link dispose of all our terminals at the host, and lend nothing any
// more. It does not wait: Status().Known is how many are left. It is called once.
func (l *Link) Withdraw() { close(l.part) }

// connect opens one connection, within that time, and serves it until it ends.
func (l *Link) connect(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{link: l, log: l.log, wake: make(chan struct{}, 1), made: time.Now(), asked: make(chan *question, askedAhead), streams: make(chan net.Conn, 1)}
	conn, err := l.dial(ctx, s, within)
	if err != nil {
		return err
	}
	defer conn.Close()
	s.conn = conn
	return s.run(ctx)
}

// dial continues the last connection if there was one and the host still knows it.
// Otherwise it starts a new one.
func (l *Link) dial(ctx context.Context, s *session, within time.Duration) (*client.Conn, error) {
	ctx, end := l.attempt(ctx, within)
	defer end()
	o := client.Options{
		ClientID: l.opts.ClientID,
		Info:     ahp.Implementation{Name: "tether", Version: l.opts.Version, Title: l.opts.Machine},
		Meta:     l.marker(), OnEnvelope: s.onEnvelope, OnNotification: s.onNotification, OnRequest: s.onRequest,
		ReadLimit: client.LenderReadLimit, MaxValues: client.LenderMaxValues,
	}
	if l.opts.Ports != nil {
		o.OnStream, o.Typing = s.onStream, l.opts.Terminals.Typing
	}
	l.mu.Lock()
	last, uris := l.resume, l.createdLocked()
	l.mu.Unlock()
	if last != nil {
		if l.opts.Tools != nil {
			uris = append(uris, l.opts.Tools.Subscriptions()...)
		}
		o.Resume = &client.Resume{Initial: last.initial, LastSeenServerSeq: last.lastSeq, Subscriptions: uris}
		conn, err := l.opts.Connect(ctx, l.opts.Endpoint, o)
		if err == nil || errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrUnauthorized) {
			return conn, err
		}
		if ctx.Err() != nil && within < l.opts.DialTimeout {
			return nil, err // the time was short
		}
		l.forgetResume() // otherwise a host whose reconnect is broken would never let us in
		if !errors.Is(err, client.ErrNotResumed) {
			return nil, err
		}
		o.Resume = nil
	}
	conn, err := l.opts.Connect(ctx, l.opts.Endpoint, o)
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && refused.Code == ahp.CodePermissionDenied {
		l.log.Warn().Err(shownError{err}).Msg("the host refused the clientId")
		err = ErrTaken
	}
	return conn, err
}

// marker returns the _meta of initialize.
func (l *Link) marker() ahp.Meta {
	return ahp.ClientMarker{Runs: l.opts.Runs != nil, Ports: l.opts.Ports != nil}.Meta()
}

// overtaken is how long an attempt may continue after a move: packets sent before it may
// be lost.
const overtaken = time.Second

// attempt bounds an attempt to connect. The caller calls end.
func (l *Link) attempt(ctx context.Context, within time.Duration) (_ context.Context, end func()) {
	ctx, cancel := context.WithTimeout(ctx, within)
	moved, _ := l.moves.wait()
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(overtaken):
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel()
		wg.Wait()
	}
}

func (l *Link) forgetResume() {
	l.mu.Lock()
	l.resume = nil
	l.mu.Unlock()
}

// createdLocked returns the URIs that the host may know.
func (l *Link) createdLocked() []string {
	var uris []string
	for _, le := range l.lendings {
		if le.created {
			uris = append(uris, le.uri)
		}
	}
	return uris
}

// ErrUnsupported is why a link to a host without client-executed terminals is not used.
var ErrUnsupported = errors.New("the host takes no terminals of other machines")

// ErrTaken: at the host, this machine's clientId belongs to another token. With another
// clientId, the link works.
var ErrTaken = errors.New("this machine is registered at the host under another token; pair again: tether pair URL")

// errForbidden: the host accepts the token, but does not let it lend.
var errForbidden = errors.New("the host lets this token only observe; pair again with a token that may lend: tether pair URL --token-file FILE")

// errWrongTarget: the host started a shell of its own.
var errWrongTarget = fmt.Errorf("%w: it started a shell of its own, which was disposed of", ErrUnsupported)

// wrongTargetRetry is the pause before such a host is tried again: every attempt starts a
// shell there.
const wrongTargetRetry = 24 * time.Hour

func stateFor(err error) State {
	var version *ahp.VersionError
	switch {
	case errors.Is(err, client.ErrUnauthorized), errors.Is(err, client.ErrPin), errors.Is(err, ErrTaken), errors.Is(err, errForbidden):
		return StateRefused
	case errors.Is(err, ErrUnsupported), errors.As(err, &version):
		return StateUnsupported
	}
	return StateWaiting
}
