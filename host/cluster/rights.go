package cluster

import (
	"context"
	"fmt"
	"time"

	"tether/host/admission"
	"tether/internal/retry"
)

// beat is a key that all nodes write. Its changes arrive after all earlier changes, so a
// node that sees its own write knows that it has missed nothing.
const beat = "beat"

// MinRightsGrace is the shortest Options.RightsGrace. It is how long a change may take to
// have effect at all nodes.
const MinRightsGrace = 2 * time.Second

const (
	// checkEvery is the pause between two checks that no change was missed; checkTime
	// bounds one check.
	checkEvery, checkTime = time.Second, 2 * time.Second
	// electTime is how long connected servers may take to elect a leader; until then
	// rights do not count as old.
	electTime = 10 * time.Second
	// defaultGrace is used if Options.RightsGrace is 0.
	defaultGrace = time.Minute
	judgeEvery   = 100 * time.Millisecond
)

// Reached reports whether NATS is reached and rights are up to date.
func (n *Node) Reached() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.nc.IsConnected() && n.rights == admission.Checked
}

// checkRights checks periodically that the node has all changes of the bucket.
func (n *Node) checkRights() {
	for n.ctx.Err() == nil {
		began := time.Now()
		wait := checkEvery
		if n.upToDate() {
			n.mu.Lock()
			n.checked = began
			n.mu.Unlock()
		} else {
			wait = repeatAfter
		}
		retry.Wait(n.ctx, wait)
	}
}

// upToDate writes to the bucket and waits until the watch reports that write.
func (n *Node) upToDate() bool {
	ctx, cancel := context.WithTimeout(n.ctx, checkTime)
	defer cancel()
	revision, err := n.kv.Put(ctx, beat, []byte(n.id))
	for err == nil && ctx.Err() == nil {
		if n.known(beat).revision >= revision {
			return true
		}
		retry.Wait(ctx, repeatAfter/10)
	}
	return false
}

// judgeRights tells the host how old its rights are.
func (n *Node) judgeRights() {
	for retry.Wait(n.ctx, judgeEvery) {
		n.mu.Lock()
		before, h, age := n.rights, n.host, time.Since(n.checked)
		n.rights = rightsOf(age, before == admission.Checked && n.nc.IsConnected(), n.opts.RightsGrace)
		now := n.rights
		n.mu.Unlock()
		if h != nil {
			h.SetRights(now)
		}
		if now != before {
			n.log.Warn().Str("age", fmt.Sprint(age.Round(time.Second))).Msg(rightsText[now])
		}
	}
}

var rightsText = map[admission.Age]string{
	admission.Checked: "the rights of the cluster are known again",
	admission.Old:     "NATS is not reached: nobody new is admitted",
	admission.Lapsed:  "NATS is not reached for too long: what was open is closed, but for machines",
}

// rightsOf returns the state of rights that were last checked age ago. connected says
// that the connection was never lost since then, so that the servers may only be electing
// a leader; after a loss, rights are good only after another check.
func rightsOf(age time.Duration, connected bool, grace time.Duration) admission.Age {
	tolerated := MinRightsGrace
	if connected {
		tolerated = electTime
	}
	switch {
	case age < tolerated:
		return admission.Checked
	case age < max(tolerated, grace):
		return admission.Old
	}
	return admission.Lapsed
}
