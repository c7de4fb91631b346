package webhook_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/host/access"
	"tether/host/rights"
	"tether/host/webhook"
	"tether/internal/testkit/must"
)

const target = "https://agent.example.com/hook?x=1"

// secret is a client's secret that is made of one letter.
func secretOf(letter string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

// journal is a source of events by number, of which those before start are lost.
type journal struct {
	mu      sync.Mutex
	start   int
	end     int
	ended   bool
	changed chan struct{}
	opened  []string
	kind    string // begins the ids of events: those of another grouping are others
}

func newJournal() *journal { return &journal{changed: make(chan struct{}), kind: "e-"} }

// now changes the journal.
func (j *journal) now(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
	close(j.changed)
	j.changed = make(chan struct{})
}

// add makes more happen.
func (j *journal) add(n int) { j.now(func() { j.end += n }) }

// open is a hub's Options.Open.
func (j *journal) open(_ context.Context, p rights.Principal, r webhook.Request) (webhook.Source, bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.Name == "unknown" {
		return nil, false, errors.New("no such event")
	}
	j.opened = append(j.opened, p.Name+" "+r.Name)
	s := &source{j: j, at: j.end}
	if r.Cursor != nil {
		s.at, _ = strconv.Atoi(*r.Cursor)
	}
	truncated := s.at < j.start
	s.at = max(s.at, j.start)
	return s, truncated, nil
}

type source struct {
	j  *journal
	at int
}

func place(n int) *string { text := strconv.Itoa(n); return &text }

func (s *source) Cursor() *string { return place(s.at) }
func (s *source) Close()          {}

func (s *source) Next(ctx context.Context) (webhook.Event, error) {
	for {
		s.j.mu.Lock()
		start, end, ended, changed, kind := s.j.start, s.j.end, s.j.ended, s.j.changed, s.j.kind
		s.j.mu.Unlock()
		switch {
		case ended:
			return webhook.Event{}, &webhook.EndedError{Object: json.RawMessage(`{"code":-32012,"message":"Forbidden"}`)}
		case s.at < start:
			s.at = start
			return webhook.Event{Gap: true, Cursor: place(start)}, nil
		case s.at < end:
			s.at++
			return webhook.Event{ID: fmt.Sprint(kind, s.at), Body: fmt.Appendf(nil, `{"eventId":"e-%d","cursor":"%d"}`, s.at, s.at), Cursor: place(s.at)}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return webhook.Event{}, ctx.Err()
		}
	}
}

// receiver takes deliveries, without a network.
type receiver struct {
	t  *testing.T
	mu sync.Mutex
	// answer answers an event instead of 204, if it is set.
	answer    func(http.ResponseWriter, *http.Request, string)
	challenge func(string) string // the answer to a challenge; nil echoes it
	secrets   []string            // one of which must have signed

	got []string // ids of received events, "verification", "gap 3", "terminated"
	at  []time.Time
}

// RoundTrip implements http.RoundTripper.
func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if req.URL.String() != target && !strings.HasPrefix(req.URL.Path, "/other") {
		r.t.Errorf("a request to %s", req.URL)
	}
	r.mu.Lock()
	answer, challenge, secrets := r.answer, r.challenge, r.secrets
	r.mu.Unlock()
	r.checkSigned(req, body, secrets)
	var control struct{ Type, Challenge, Cursor string }
	_ = json.Unmarshal(body, &control) // an event has none of these
	switch {
	case control.Type == "verification":
		if challenge == nil {
			challenge = func(c string) string { return `{"challenge":"` + c + `"}` }
		}
		io.WriteString(w, challenge(control.Challenge))
	case answer != nil:
		answer(w, req, req.Header.Get("webhook-id"))
	default:
		w.WriteHeader(http.StatusNoContent)
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if w.Code < 300 {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch control.Type {
		case "":
			r.got = append(r.got, req.Header.Get("webhook-id"))
		case "gap":
			r.got = append(r.got, "gap "+control.Cursor)
		default:
			r.got = append(r.got, control.Type)
		}
		r.at = append(r.at, time.Now())
	}
	return w.Result(), nil
}

func (r *receiver) checkSigned(req *http.Request, body []byte, secrets []string) {
	seconds, err := strconv.ParseInt(req.Header.Get("webhook-timestamp"), 10, 64)
	if err != nil || !time.Unix(seconds, 0).Equal(time.Now().Truncate(time.Second)) {
		r.t.Errorf("a request at %v with the time %s", time.Now(), req.Header.Get("webhook-timestamp"))
	}
	if req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(req.Header.Get("X-MCP-Subscription-Id"), "sub_") {
		r.t.Errorf("%s with %v", req.Method, req.Header)
	}
	for _, secret := range secrets {
		want, err := webhook.SignaturesOf(secret, req.Header.Get("webhook-id"), time.Unix(seconds, 0), body)
		if err != nil || !strings.Contains(" "+req.Header.Get("webhook-signature")+" ", " "+want+" ") {
			r.t.Errorf("%s is not signed with %s: %s", body, secret, req.Header.Get("webhook-signature"))
		}
	}
}

// now changes the receiver.
func (r *receiver) now(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// taken lists the deliveries so far, without the verification.
func (r *receiver) taken() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimSpace(strings.Join(r.got, " "))
}

// rig is a hub that runs.
type rig struct {
	t        *testing.T
	hub      *webhook.Hub
	journal  *journal
	receiver *receiver
	opts     webhook.Options
	stop     func()
	ann      rights.Principal
	revoke   context.CancelFunc
	audit    *strings.Builder
}

func newRig(t *testing.T, file string) *rig {
	r := &rig{t: t, journal: newJournal(), receiver: &receiver{t: t, secrets: []string{secretOf("a")}}, audit: &strings.Builder{}}
	live, revoke := context.WithCancel(context.Background())
	r.ann, r.revoke = rights.Principal{Name: "ann", Role: rights.RoleAgent, Live: live}, revoke
	var mu sync.Mutex
	r.opts = webhook.Options{Open: r.journal.open, Find: func(name string, role rights.Role) (rights.Principal, bool) {
		return r.ann, name == "ann" && role == rights.RoleAgent && live.Err() == nil
	}, Audit: func(ev rights.AuditEvent) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(r.audit, "%s %s: %s\n", ev.Type, ev.Name, ev.Detail)
	}}
	if file != "" {
		r.opts.Place = access.OwnFile(file)
	}
	r.start()
	return r
}

// start makes a hub that runs.
func (r *rig) start() {
	r.t.Helper()
	hub := must.Get(webhook.New(r.opts))(r.t)
	hub.SetTransport(r.receiver)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { hub.Run(ctx); close(done) }()
	r.hub, r.stop = hub, func() { cancel(); <-done }
	synctest.Wait()
}

// subscribe subscribes ann to lines.
func (r *rig) subscribe(change func(*webhook.Request)) (webhook.Answer, error) {
	req := webhook.Request{Name: "terminal.line", Arguments: json.RawMessage(`{"pattern":"x"}`), URL: target, Secret: secretOf("a")}
	if change != nil {
		change(&req)
	}
	return r.hub.Subscribe(r.t.Context(), r.ann, req)
}

func (r *rig) mustSubscribe(change func(*webhook.Request)) webhook.Answer {
	r.t.Helper()
	return must.Get(r.subscribe(change))(r.t)
}
