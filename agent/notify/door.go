package notify

import (
	"context"
	"net/http"
	"sync"
	"time"

	"tether/agent/config"
	"tether/agent/localapi"
	"tether/internal/deliver"
)

// List implements local.Notifier. With reach, it asks each receiver whether it is there,
// without sending a message.
func (n *Notifier) List(ctx context.Context, reach bool) localapi.Notifications {
	out := localapi.Notifications{SchemaVersion: localapi.SchemaVersion, Receivers: []localapi.NotifyReceiver{}, Rules: []localapi.NotifyRule{}}
	for _, one := range n.opts.Rules {
		out.Rules = append(out.Rules, localapi.NotifyRule{Name: one.Name, On: one.On, To: one.To, Terminals: append([]string{}, one.Terminals...), Quiet: one.Quiet, Problem: n.unknown(one.To)})
	}
	for _, r := range n.opts.Receivers.list() {
		out.Receivers = append(out.Receivers, r.shown())
	}
	if reach {
		var asking sync.WaitGroup
		for i := range out.Receivers {
			asking.Go(func() { out.Receivers[i].Problem = n.reach(ctx, out.Receivers[i].Name) })
		}
		asking.Wait()
	}
	return out
}

// shown returns what the person is shown of a receiver.
func (r *receiver) shown() localapi.NotifyReceiver {
	out := localapi.NotifyReceiver{Name: r.Name, Form: string(r.Form), Store: localapi.StoreFile}
	if r.Sealed {
		out.Store = localapi.StoreKeyring
	}
	return out
}

// reach says why a receiver cannot be reached; "" if it answers anything.
func (n *Notifier) reach(ctx context.Context, name string) string {
	r, err := n.opts.Receivers.get(name)
	if err != nil {
		return failureText(deliver.Result{Failure: failureURL})
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodHead, r.URL, nil)
	if err != nil {
		return failureText(deliver.Result{Failure: failureURL})
	}
	if got := deliver.Send(n.client, q, 0); got.Status == 0 {
		return failureText(got)
	}
	return ""
}

// Add implements local.Notifier.
func (n *Notifier) Add(name string, r localapi.ReceiverRequest) (localapi.NotifyReceiver, error) {
	if err := n.opts.Receivers.put(name, r.URL, Form(r.Form)); err != nil {
		return localapi.NotifyReceiver{}, err
	}
	n.opts.Audit("the URL " + name + " was added")
	n.opts.Report(cause(name), "")
	n.to(name).again()
	added, err := n.opts.Receivers.get(name)
	return added.shown(), err
}

// Remove implements local.Notifier.
func (n *Notifier) Remove(name string) error {
	if err := n.opts.Receivers.remove(name); err != nil {
		return err
	}
	n.opts.Audit("the URL " + name + " was removed")
	n.opts.Report(cause(name), "")
	n.reportUnknown()
	return nil
}

// Test implements local.Notifier.
func (n *Notifier) Test(ctx context.Context, name string) error {
	if name != config.NotifyDesktop && !n.opts.Receivers.has(name) {
		return errUnknown(name)
	}
	m := message{Rule: "test", Title: "tether: a test on " + n.opts.Machine, Text: "This is a test: tether notify test " + name, At: time.Now(), Count: 1}
	got := n.try(ctx, name, &m)
	if got.Failure != "" {
		return &localapi.Error{Code: localapi.CodeUnreachable, Message: name + " did not take the message: " + failureText(got), Hint: testHint(name)}
	}
	n.to(name).again()
	return nil
}

func testHint(name string) string {
	if name == config.NotifyDesktop {
		return "send to a URL instead: tether notify add NAME"
	}
	return "give another URL, or another form: tether notify add " + name + " --form FORM"
}
