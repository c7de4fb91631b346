package host

import (
	"context"
	"net/http"

	"tether/host/admission"
	"tether/host/rights"
)

// Rights says how old the tokens, people and grants are that a node of a cluster knows
// and by which it admits and serves clients.
type Rights int32

// The ages of rights.
const (
	RightsChecked Rights = iota // the node has all changes of the cluster
	RightsOld                   // the node does not reach NATS: it admits nobody new
	RightsLapsed                // the node has not reached NATS for too long: it serves only machines
)

var errRightsOld = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "this node does not reach its cluster and admits nobody: try another one", Quiet: true}

// SetRights sets how old the rights are. A machine's connection stays in any case until
// it breaks: it shows only the machine's own terminals, and the machine connects to
// another node next time.
func (h *Host) SetRights(r Rights) {
	if Rights(h.rights.Swap(int32(r))) == r {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r != RightsLapsed && h.lapsed.Err() != nil:
		h.lapsed, h.lapse = context.WithCancel(context.Background())
	case r == RightsLapsed && h.lapsed.Err() == nil:
		h.lapse()
		for c := range h.conns {
			if !c.taken && c.remote.principal.Role != rights.RoleMachine {
				c.expelLocked(closeGoingAway, errRightsOld.Text)
			}
		}
	}
}

// admits decides whether a request is served at all. While rights are old, only those of
// in are; nil admits none.
func (h *Host) admits(r *http.Request, in func(*http.Request) bool) *admission.Refusal {
	age := Rights(h.rights.Load())
	if age == RightsChecked || age == RightsOld && in != nil && in(r) {
		return nil
	}
	return errRightsOld
}

// unlapsed returns a context that ends with ctx or when rights have lapsed. The caller
// must call done.
func (h *Host) unlapsed(ctx context.Context) (_ context.Context, done func()) {
	if h.opts.Nodes == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	h.mu.Lock()
	stop := context.AfterFunc(h.lapsed, func() { cancel(errRightsOld) })
	h.mu.Unlock()
	return ctx, func() { stop(); cancel(nil) }
}
