package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/events"
)

// extension is the key of MCP's events extension (SEP-3415) in capabilities. The final
// text of the extension may change its error codes and its rule for webhook-id. The codes
// are only in errorCodes.
const extension = "io.modelcontextprotocol/events"

// Methods of the extension.
const (
	methodList        = "events/list"
	methodPoll        = "events/poll"
	methodStream      = "events/stream"
	methodSubscribe   = "events/subscribe"
	methodUnsubscribe = "events/unsubscribe"
)

const complete = "complete" // the resultType of each result of the extension's methods

// errorCodes are the codes of each reason: proposal has the code in the proposal's text,
// for clients that declare the extension; sketch has the code in the earlier sketch, for
// all other clients, which were written for that.
var errorCodes = map[events.Reason]struct{ proposal, sketch int64 }{
	events.InvalidParams:     {jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidParams},
	events.NotFound:          {-32023, -32011},
	events.Forbidden:         {-32024, -32012},
	events.ResourceExhausted: {-32025, -32013},
	events.Unsupported:       {-32026, -32014},
	events.CallbackEndpoint:  {-32027, -32015},
}

type listParams struct {
	sdk.ParamsBase
	Cursor *string `json:"cursor"`
}

type listResult struct {
	sdk.ResultBase
	ResultType string        `json:"resultType"`
	Events     []events.Kind `json:"events"`
}

// eventParams are the parameters of events/poll and events/stream.
type eventParams struct {
	sdk.ParamsBase
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Cursor    *string         `json:"cursor"`
	MaxAgeMs  *int64          `json:"maxAgeMs"`
	MaxEvents *int            `json:"maxEvents"`
}

type pollResult struct {
	sdk.ResultBase
	ResultType string         `json:"resultType"`
	Events     []events.Event `json:"events"`
	Cursor     string         `json:"cursor"`
	Truncated  bool           `json:"truncated"`
	HasMore    bool           `json:"hasMore"`
	NextPollMs int64          `json:"nextPollMs"`
}

type endResult struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
}

// addEvents registers the methods of the extension.
func (s *Server) addEvents() {
	add := func(err error) {
		if err != nil {
			panic(err) // the SDK already has a method with that name
		}
	}
	add(sdk.AddReceivingCustomMethod(s.server, methodList, func(_ context.Context, ss *sdk.ServerSession, p *listParams) (*listResult, error) {
		if p != nil && p.Cursor != nil && *p.Cursor != "" {
			return nil, eventError(ss, p.Meta, &events.Error{Reason: events.InvalidParams, Text: "cursor is invalid: the list has one page; leave cursor out", Data: map[string]any{"field": "cursor"}})
		}
		return &listResult{ResultType: complete, Events: s.kindsOffered()}, nil
	}))
	add(sdk.AddReceivingCustomMethod(s.server, methodPoll, s.poll))
	add(sdk.AddReceivingCustomMethod(s.server, methodStream, s.stream))
	s.addWebhooks(add)
	s.server.AddReceivingMiddleware(advertise)
}

func metaOf(p *eventParams) sdk.Meta {
	if p == nil {
		return nil
	}
	return p.Meta
}

// request converts the parameters to a request for the engine.
func (p *eventParams) request() (*events.Request, error) {
	if p == nil {
		return &events.Request{}, nil
	}
	r := &events.Request{Name: p.Name, Arguments: p.Arguments, Cursor: p.Cursor}
	if p.MaxAgeMs != nil {
		if *p.MaxAgeMs < 0 || *p.MaxAgeMs > time.Hour.Milliseconds()*24*366 {
			return nil, &events.Error{Reason: events.InvalidParams, Text: "maxAgeMs must be 0 to one year", Data: map[string]any{"field": "maxAgeMs"}}
		}
		r.MaxAge = new(time.Duration(*p.MaxAgeMs) * time.Millisecond)
	}
	if p.MaxEvents != nil {
		if *p.MaxEvents < 1 {
			return nil, &events.Error{Reason: events.InvalidParams, Text: "maxEvents must be 1 or more", Data: map[string]any{"field": "maxEvents"}}
		}
		r.MaxEvents = *p.MaxEvents
	}
	return r, nil
}

func (s *Server) poll(ctx context.Context, ss *sdk.ServerSession, p *eventParams) (answer *pollResult, err error) {
	defer s.tools.Survive(methodPoll, func() { answer, err = nil, errors.New("events/poll ran into a bug in tether; its log has the details") })
	r, err := p.request()
	if err != nil {
		return nil, eventError(ss, metaOf(p), err)
	}
	page, err := s.opts.Events.Poll(ctx, r)
	if err != nil {
		return nil, eventError(ss, metaOf(p), err)
	}
	return &pollResult{ResultType: complete, Events: page.Events, Cursor: page.Cursor, Truncated: page.Truncated, HasMore: page.More, NextPollMs: page.Next.Milliseconds()}, nil
}

// eventError converts an *events.Error to a JSON-RPC error. It returns other errors
// unchanged.
func eventError(ss *sdk.ServerSession, meta sdk.Meta, err error) error {
	var e *events.Error
	if !errors.As(err, &e) {
		return err
	}
	wire := wireError(e, declares(ss, meta))
	return wire
}

// ErrorObject returns the JSON-RPC error object for a receiver of webhooks. declared is
// Webhook.Declared.
func ErrorObject(e *events.Error, declared bool) json.RawMessage {
	object, _ := json.Marshal(wireError(e, declared)) // cannot fail: it has numbers, a string and JSON
	return object
}

func wireError(e *events.Error, declared bool) *jsonrpc.Error {
	codes := errorCodes[e.Reason]
	code := codes.sketch
	if declared {
		code = codes.proposal
	}
	data, _ := json.Marshal(e.Data) // cannot fail: the values are strings and numbers
	return &jsonrpc.Error{Code: code, Message: string(e.Reason) + ": " + e.Text, Data: data}
}

// declares reports whether the client has declared the extension in its capabilities.
// Only clients that were written for the proposal's text do that.
func declares(ss *sdk.ServerSession, meta sdk.Meta) bool {
	if caps, ok := meta["io.modelcontextprotocol/clientCapabilities"].(map[string]any); ok {
		known, ok := caps["extensions"].(map[string]any)
		return ok && known[extension] != nil
	}
	if ss == nil || ss.InitializeParams() == nil || ss.InitializeParams().Capabilities == nil {
		return false
	}
	return ss.InitializeParams().Capabilities.Extensions[extension] != nil
}

// advertise is a middleware that adds the capability "events", for which clients of the
// sketch look.
func advertise(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		answer, err := next(ctx, method, req)
		if err != nil || method != "initialize" && method != "server/discover" {
			return answer, err
		}
		return advertised{answer, method == "server/discover"}, nil
	}
}

// advertised is an answer to initialize or server/discover, with the capability "events"
// added.
type advertised struct {
	sdk.Result
	discovered bool
}

// MarshalJSON implements json.Marshaler.
func (a advertised) MarshalJSON() ([]byte, error) {
	whole, err := json.Marshal(a.Result)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if err := json.Unmarshal(whole, &members); err != nil {
		return nil, err
	}
	if caps, ok := members["capabilities"].(map[string]any); ok {
		caps["events"] = struct{}{}
	}
	if a.discovered {
		members["resultType"] = complete // the SDK adds this only to its own types
	}
	return json.Marshal(members)
}
