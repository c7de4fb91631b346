package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/runs"
	"tether/agent/start"
	"tether/agent/term"
	"tether/agenttools"
	"tether/internal/bounded"
	"tether/internal/checkout"
	"tether/internal/jsonspan"
	"tether/mcp"
	"tether/problems"
	"tether/vocab"
)

// Daemon is the rest of the daemon that this door needs. All methods are safe for
// concurrent use; errors that are an *Error keep their code.
type Daemon interface {
	// Status answers at once, without asking a host.
	Status() localapi.Status
	// Environment returns the environment of an interactive login. With refresh, it runs
	// the login shell again.
	Environment(ctx context.Context, refresh bool) ([]string, error)
	// HandOver makes the daemon end soon and leave the terminals to the next daemon; it
	// does not wait for that.
	HandOver() localapi.HandOver
	// Shutdown makes the daemon end soon; it does not wait for that.
	Shutdown()
}

// Hosts are the hosts that this machine is paired with. All methods are safe for
// concurrent use; errors that are an *Error keep their code.
type Hosts interface {
	// Pair asks the host once, then stores the pairing and starts a link.
	Pair(context.Context, localapi.PairRequest) (localapi.HostStatus, error)
	// Offer begins pairing by a code, if the host supports that; Finish waits for the
	// approval.
	Offer(context.Context, localapi.PairRequest) (localapi.PairOffer, error)
	Finish(ctx context.Context, id string) (localapi.HostStatus, error)
	// ChangeHost renames a paired host or makes it the default one.
	ChangeHost(ctx context.Context, name string, c localapi.HostChange) (localapi.HostStatus, error)
	// CheckAudience refuses names that may not be in the audience of a terminal at a
	// host: because the host says so, or because it does not keep audiences apart. If the
	// host is offline, it refuses nothing.
	CheckAudience(ctx context.Context, host string, names []string) error
	// AudienceTold waits until the host knows a terminal's audience, ctx ends or the host
	// is offline.
	AudienceTold(ctx context.Context, host string, h term.Handle) bool
	// TakesTerminal says why a host does not take a terminal that is lent to it, if that
	// is known or found out before ctx ends. If the host is offline, it returns nil.
	TakesTerminal(ctx context.Context, host string, h term.Handle) error
	// TakesPorts returns an error if the host takes no lent ports. If the host is
	// offline, it returns nil.
	TakesPorts(host string) error
	// TakesShares returns an error if the host is offline or accepts no links for guests.
	TakesShares(host string) error
	// ShareTold waits until the host knows a share, and returns the beginning of its
	// links, "" if the host did not report it.
	ShareTold(ctx context.Context, host string, h term.Handle, id string) (base string, err error)
	// LinkPrivate links to a host on loopback, to which only the terminal with that id
	// may be lent, until end is called.
	LinkPrivate(ctx context.Context, at localapi.PrivateHost, id term.ID) (name string, end func(), err error)
	// Unpair ends the link and forgets the host.
	Unpair(ctx context.Context, name string) (localapi.Unpaired, error)
}

// Options configures a Server. Access, Daemon and Hosts are required.
type Options struct {
	// Access returns the terminals as an actor may see them: Pool.As. A client of the
	// socket is the local user, or an agent if it says so.
	Access func(term.Actor) term.Access
	Daemon Daemon
	Hosts  Hosts
	// Declared are the terminals that the configuration declares; nil means none.
	Declared Declarer
	// Adopter adopts panes of other programs; nil means that none can be.
	Adopter Adopter
	// NoShares refuses links for guests.
	NoShares bool
	// Tokens are the tokens that ServeTCP admits; nil if it is not used. Origins are the
	// origins of pages that may connect, such as "https://ui.example"; default: none.
	Tokens  *Tokens
	Origins []string
	// Policy decides which commands agents may run; nil means the built-in rules.
	Policy *policy.Engine
	// Notifier tells the person what happens.
	Notifier Notifier
	// Starter starts terminals.
	Starter *start.Starter
	// Expect, if not nil, is called when a person has started a terminal that they attach
	// at once, and may soon start another. It must not block.
	Expect func()
	// Agents has the recorded processes of agents; nil records none.
	Agents *Agents
	// Identity has the person's changes to the tables of programs; nil means none.
	Identity *Identity
	// Runs is the history of terminals' runs; nil if none is kept.
	Runs *runs.Runs
	// Checkouts finds the git work trees of directories; nil means a finder of its own.
	// TellsCheckout, if not nil, reports whether a host, and agents there, may know that
	// a terminal is in a checkout. It must not block for long.
	Checkouts     *checkout.Finder
	TellsCheckout func(host string, c vocab.Checkout) bool
	// Unseen says what agents are told of listening programs in no terminal, in the words
	// of config.Agents.Unseen; "" means nothing. Never is runs.Options.Never: they are
	// not told of a directory that must not be lent; nil means that there is none. Mask,
	// if not nil, masks secrets in what they are told.
	Unseen string
	Never  func(host string, dirs ...string) (never bool, settled <-chan struct{})
	Mask   func(text string) string
	// Sandbox, if not nil, returns the command that runs an agent's own program in its
	// sandbox, in a directory.
	Sandbox func(actor term.Actor, cwd string, argv []string) ([]string, error)
	// Matchers find problems; nil means the matchers of known tools.
	Matchers *problems.Set
	Version  string // of this program, shown to agents
	Machine  string // the name of this machine that hosts are told
	// Files is how many files this process may have open, which bounds the person's
	// connections; 0 means that the number is not known.
	Files uint64
	// WriteTimeout is how long a client may stop reading before it is disconnected,
	// default 5 min. A slow client holds its terminal for at most the pool's stall time,
	// and delays nothing else.
	WriteTimeout time.Duration
	// Stirred, if not nil, is called when a user interface or an attached person connects
	// or disconnects. It must not block.
	Stirred func()
	Logger  *zerolog.Logger // nil means silence
}

// Time limits for a client's quick operations.
const (
	headerTimeout       = 5 * time.Second
	bodyTimeout         = 10 * time.Second
	idleTimeout         = time.Minute
	killTimeout         = 15 * time.Second // KillGrace, and time to end the remaining processes
	closeMessageTimeout = 500 * time.Millisecond
)

// maxHeader bounds the header of a request, in bytes.
const maxHeader = 16 << 10

// Server serves one daemon. Goroutines: those of net/http, and one more per attached
// client that reads its input; all have ended when Close returns.
type Server struct {
	opts   Options
	system system
	log    zerolog.Logger
	http   http.Server // on the socket
	tcp    http.Server

	conns    *conns // of both
	tcpPort  atomic.Int64
	keeping  atomic.Bool     // set before draining if the terminals continue
	draining context.Context // when done, attached clients are disconnected and requests refused
	drain    context.CancelFunc

	entering sync.Mutex     // held while a request is added to attached, or draining begins
	attached sync.WaitGroup // hijacked connections

	ui       ui
	leases   leases
	sizes    sizes
	typing   typing
	proxied  proxied
	agents   mcp.Servers          // for each agent that has connected
	matching *agenttools.Matching // problems, for clients over HTTP
	lately   lately
	fetches  bounded.Slots // of pages, by principal
}

// NewServer returns a server that does nothing until Serve.
func NewServer(o Options) *Server {
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 5*time.Minute)
	if o.Agents == nil {
		o.Agents = &Agents{}
	}
	if o.Identity == nil {
		o.Identity = &Identity{}
	}
	if o.Checkouts == nil {
		o.Checkouts = new(checkout.Finder)
	}
	o.agentDefaults()
	s := &Server{opts: o, system: thisSystem(), log: zerolog.Nop(), agents: mcp.Servers{Max: maxAgents}}
	s.fetches.Each = fetchesAtOnce
	s.lately.turn = make(chan struct{}, 1)
	s.lately.turn <- struct{}{}
	if o.Logger != nil {
		s.log = *o.Logger
	}
	s.matching = s.newMatching()
	s.draining, s.drain = context.WithCancel(context.Background())
	routes := s.unlessDraining(s.routes())
	s.http.Handler, s.tcp.Handler = s.guard(s.onSocket(routes)), s.guard(s.onTCP(routes))
	s.conns = newConns(o.Files, func(p peer) term.Actor { return s.caller(p).Actor })
	s.http.ConnContext, s.tcp.ConnContext = withConn, withTCPClient
	for _, h := range []*http.Server{&s.http, &s.tcp} {
		h.ConnState = moved
		h.ReadHeaderTimeout, h.IdleTimeout, h.MaxHeaderBytes = headerTimeout, idleTimeout, maxHeader
		h.ErrorLog = log.New(io.Discard, "", 0) // clients get errors as answers; guard logs panics
	}
	s.leases.resume(o.Access)
	return s
}

// Serve serves connections of l until Close, and closes l.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(&listener{Listener: l, table: s.conns, peers: true})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Drain disconnects the attached clients with a close message and refuses new requests.
// It returns when they are gone.
func (s *Server) Drain() {
	s.entering.Lock()
	s.drain()
	s.entering.Unlock()
	s.agents.Close()
	s.matching.Close()
	s.leases.close()
	s.attached.Wait()
}

// DrainKeeping is Drain for a daemon whose terminals continue: it tells attached clients
// to look for the next daemon.
func (s *Server) DrainKeeping() {
	s.keeping.Store(true)
	s.Drain()
}

// enter makes Drain wait for a client until it calls attached.Done. It returns an error
// once the server drains.
func (s *Server) enter() error {
	s.entering.Lock()
	defer s.entering.Unlock()
	if s.draining.Err() != nil {
		return errDraining
	}
	s.attached.Add(1)
	return nil
}

// stirred calls Options.Stirred.
func (s *Server) stirred() {
	if s.opts.Stirred != nil {
		s.opts.Stirred()
	}
}

// Close drains and stops listening.
func (s *Server) Close() error {
	s.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), closeMessageTimeout)
	defer cancel()
	var errs []error
	for _, h := range []*http.Server{&s.tcp, &s.http} {
		if h.Shutdown(ctx) != nil {
			errs = append(errs, h.Close())
		}
	}
	return errors.Join(errs...)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range s.handlers() {
		if needed := powers[pattern]; needed != nil {
			h = s.signed(needed, h)
		}
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				fail(w, errorFor(err))
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = mcp.AtPath(r)
		if p := r.URL.EscapedPath(); path.Clean(p) != p { // the mux would answer with a redirect, which our clients do not follow
			fail(w, errorFor(noRoute(w, r)))
			return
		}
		v1 := strings.HasPrefix(r.URL.Path, "/v1/")
		if v1 {
			w.Header().Set(localapi.FeaturesHeader, localapi.Features)
		}
		if v1 && r.ContentLength != 0 {
			if err := saysJSON(r); err != nil {
				fail(w, errorFor(err))
				return
			}
		}
		mux.ServeHTTP(w, r)
	})
}

// handlers returns the served routes, by patterns of http.ServeMux.
func (s *Server) handlers() map[string]handler {
	return map[string]handler{
		"GET " + whoamiPath:                s.whoami,
		"GET /v1/status":                   s.status,
		"GET /v1/terminals":                s.list,
		"GET /v1/ports":                    s.userPorts,
		"POST /v1/terminals":               withBody(s.spawn),
		"GET /v1/terminals/{ref}":          s.onTerminal(s.info),
		"POST /v1/terminals/{ref}/kill":    s.onTerminal(s.kill),
		"POST /v1/terminals/{ref}/promote": s.person(s.promote),
		"GET /v1/terminals/{ref}/output":   s.onTerminal(s.output),
		"GET /v1/terminals/{ref}/commands": s.onTerminal(s.commands),
		"GET /v1/terminals/{ref}/problems": s.problems,
		"GET /v1/terminals/{ref}/digest":   s.digest,
		"POST /v1/terminals/{ref}/fetch":   withBody(s.fetch),
		"GET /v1/terminals/{ref}/screen":   s.onTerminal(s.screen),
		"GET /v1/runs":                     s.listRuns,
		"GET /v1/runs/search":              s.searchRuns,
		"GET /v1/runs/{run}/output":        s.runOutput,
		"GET /v1/runs/{run}/problems":      s.problems,
		"GET /v1/runs/{run}/digest":        s.digest,
		"GET /v1/runs/compare":             s.compareRuns,
		"GET /v1/runs/verdict":             s.judgeRuns,
		"POST /v1/runs/forget":             s.person(withBody(s.forget)),
		"POST /v1/terminals/{ref}/lend":    s.person(withBody(s.lend)),
		"POST /v1/terminals/{ref}/unlend":  s.person(withBody(s.unlend)),
		"POST /v1/unlend":                  s.person(withBody(s.unlendAll)),
		"POST /v1/terminals/{ref}/share":   s.person(withBody(s.share)),
		"GET /v1/shares":                   s.person(s.shares),
		"DELETE /v1/shares/{id}":           s.person(s.unshare),
		"GET /v1/terminals/{ref}/attach":   s.onTerminal(s.attach),
		"GET /v1/terminals/{ref}/input":    s.onTerminal(s.feed),
		"GET /v1/terminals/{ref}/wait":     s.onTerminal(s.wait),
		"POST /v1/events":                  withBody(s.subscribe),
		"POST /v1/events/command":          withBody(s.mayRun),
		"GET /v1/mcp":                      s.onlySocket(s.mcpLines),
		mcp.Path:                           s.mcpHTTP,
		"GET /v1/environment":              s.person(s.environment),
		"POST /v1/environment":             s.person(s.environment),
		"POST /v1/hosts":                   s.person(withBody(s.pair)),
		"POST /v1/hosts/{name}":            s.person(withBody(s.changeHost)),
		"POST /v1/pairings":                s.person(withBody(s.offer)),
		"POST /v1/pairings/{id}":           s.person(s.finish),
		"DELETE /v1/hosts/{name}":          s.person(s.unpair),
		"POST /v1/declared":                s.person(withBody(s.declare)),
		"GET /v1/panes":                    s.person(s.panes),
		"POST /v1/adopt":                   s.person(withBody(s.adopt)),
		"POST /v1/terminals/{ref}/unadopt": s.person(s.unadopt),
		"GET /v1/health":                   s.onlySocket(s.person(s.health)),
		"GET /v1/metrics":                  s.onlySocket(s.person(s.metrics)),
		"GET /debug/pprof/{name}":          s.onlySocket(s.person(s.profile)),
		"GET /v1/log":                      s.onlySocket(s.person(s.logLevel)),
		"POST /v1/log":                     s.onlySocket(s.person(s.logLevel)),
		"POST /v1/handover":                s.onlySocket(s.person(s.handOver)),
		"POST /v1/shutdown":                s.person(s.shutdown),
		"GET /v1/tokens":                   s.onlySocket(s.person(s.listTokens)),
		"POST /v1/tokens":                  s.onlySocket(s.person(s.createToken)),
		"DELETE /v1/tokens/{principal}":    s.onlySocket(s.person(s.revokeToken)),
		"POST /v1/token":                   s.onlySocket(s.person(s.showToken)),
		"GET /v1/approvals":                s.person(s.approvals),
		"POST /v1/approvals/{id}":          s.person(withBody(s.approve)),
		"DELETE /v1/approvals/{id}":        s.person(s.revoke),
		"GET /v1/audit/head":               s.person(s.auditHead),
		"GET /v1/notify":                   s.onlySocket(s.person(s.notifications)),
		"POST /v1/notify/{name}":           s.onlySocket(s.person(withBody(s.addReceiver))),
		"DELETE /v1/notify/{name}":         s.onlySocket(s.person(s.removeReceiver)),
		"POST /v1/notify/{name}/test":      s.onlySocket(s.person(s.testReceiver)),
		"POST /v1/sandbox":                 s.onlySocket(withBody(s.sandbox)),
		"GET /pty":                         s.serveUI,
		"POST /pty/spawn":                  s.person(s.spawnPty),
		"/":                                noRoute,
	}
}

// withBody returns a handler that decodes the body for h.
func withBody[T any](h func(http.ResponseWriter, *http.Request, T) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var req T
		if err := decode(r, &req); err != nil {
			return err
		}
		return h(w, r, req)
	}
}

// saysJSON refuses a body whose Content-Type is not JSON. A page of another origin cannot
// send JSON without a preflight request.
func saysJSON(r *http.Request) error {
	kind := r.Header.Get("Content-Type")
	if r.ContentLength == 0 && kind == "" {
		return nil
	}
	if base, _, err := mime.ParseMediaType(kind); err != nil || base != "application/json" {
		return &localapi.Error{Code: localapi.CodeUnsupportedType, Message: "the Content-Type must be application/json"}
	}
	return nil
}

func noRoute(_ http.ResponseWriter, r *http.Request) error {
	return &localapi.Error{Code: localapi.CodeNotFound, Message: "there is no " + r.Method + " " + r.URL.Path}
}

// decode decodes a body that is one JSON object. guard bounds its size and the time until
// it arrives.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err == nil {
		err = jsonspan.CheckText(body)
	}
	if err == nil {
		err = d.Decode(into)
	}
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		return localapi.BadRequest("request body: more than one JSON value")
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	if own, ok := errors.AsType[*localapi.Error](err); ok {
		return own
	}
	return localapi.BadRequest("request body: %s", localapi.JSONProblem(err, into))
}

func reply(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // fails when the client is gone
	return nil
}

// answer is reply, unless there is an error.
func answer(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return reply(w, v)
}

func fail(w http.ResponseWriter, e *localapi.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Code.HTTPStatus())
	_ = reply(w, map[string]*localapi.Error{"error": e})
}
