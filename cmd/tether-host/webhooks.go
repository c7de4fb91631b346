package main

import (
	"context"
	"errors"
	"sync"

	"tether/host"
	"tether/host/access"
	"tether/host/webhook"
)

// hooks deliver events to URLs that agents name; nil for a host that does not do so.
type hooks struct {
	deliver interface{ Run(context.Context) }
	host    *host.Host // set by run
}

// openWebhooks lets agents subscribe to webhooks. It must be called after openTokens;
// without --webhooks it returns nil.
func (s *settings) openWebhooks(o *host.Options) (h *hooks, err error) {
	if !s.webhooks {
		return nil, nil
	}
	allow, err := parseNetworks("--webhook-allow", s.webhookAllow)
	if err != nil {
		return nil, err
	}
	path, err := tokensPath(s.tokens)
	if err != nil {
		return nil, err
	}
	people, ok := o.People.(*access.People)
	if !ok {
		return nil, errors.New("--webhooks needs a place for tokens: give one with --tokens FILE")
	}
	h = &hooks{}
	options := webhook.Options{Find: people.Tokens().Named, Allow: allow, Audit: o.Audit, Logger: o.Logger,
		Open: func(ctx context.Context, p host.Principal, r webhook.Request) (webhook.Source, bool, error) {
			return webhook.OpenAt(h.host)(ctx, p, r)
		},
		Lasting: func(p host.Principal) context.Context { return h.host.Lasting(p) }}
	if s.node == nil {
		options.Place = access.OwnFile(besideTokens(path, "webhooks.json"))
		hub, err := webhook.New(options)
		h.deliver, o.Webhooks = hub, webhook.Door{Hub: hub}
		return h, err
	}
	nodes, err := s.leader(path, "webhooks", "webhooks", o.Logger)
	if err != nil {
		return nil, err
	}
	shared, err := webhook.NewShared(nodes, options.Find, func(kept access.Place) (*webhook.Hub, error) {
		options.Place = kept
		return webhook.New(options)
	})
	h.deliver, o.Webhooks = shared, shared
	return h, err
}

// run delivers events of the host until the function that it returns is called, which
// waits.
func (h *hooks) run(ctx context.Context, at *host.Host) (stop func()) {
	if h == nil {
		return func() {}
	}
	h.host = at
	ctx, cancel := context.WithCancel(ctx)
	var run sync.WaitGroup
	run.Go(func() { h.deliver.Run(ctx) })
	return func() { cancel(); run.Wait() }
}
