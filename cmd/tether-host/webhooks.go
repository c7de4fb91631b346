package main

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/rs/zerolog"

	"tether/host"
	"tether/host/access"
	"tether/host/cluster"
	"tether/host/webhook"
)

// hooks deliver events to URLs that agents name; nil where the host sends nothing by itself.
type hooks struct {
	hub    *webhook.Hub    // of a host that is alone
	shared *webhook.Shared // of a node
	node   *cluster.Node
	log    zerolog.Logger
	open   func(context.Context, host.Principal, webhook.Request) (webhook.Source, bool, error) // set by run
}

// openWebhooks lets agents subscribe. It is called after openTokens; without --webhooks it returns nil.
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
	h = &hooks{node: s.node, log: *o.Logger}
	find := people.Tokens().Named
	options := webhook.Options{Find: find, File: besideTokens(path, "webhooks.json"), Allow: allow, Audit: o.Audit, Logger: o.Logger,
		Open: func(ctx context.Context, p host.Principal, r webhook.Request) (webhook.Source, bool, error) {
			return h.open(ctx, p, r)
		}}
	if s.node != nil {
		return h, h.share(o, options, keyPath(path))
	}
	if h.hub, err = webhook.New(options); err != nil {
		return nil, err
	}
	o.Webhooks = webhook.Door{Hub: h.hub}
	return h, nil
}

// share lets one node deliver for all.
func (h *hooks) share(o *host.Options, options webhook.Options, key string) error {
	secret, err := hostKey(key)
	if err != nil {
		return err
	}
	options.File, options.Place = "", h.node.Place("webhooks")
	if options.Key, err = hkdf.Key(sha256.New, secret.Seed(), nil, "tether-host webhooks", 32); err != nil {
		return err
	}
	h.shared = webhook.NewShared(h.node, options.Key, options.Find, func(epoch int64) (*webhook.Hub, error) {
		options.Epoch = epoch
		return webhook.New(options)
	})
	h.node.Answer(webhook.AboutWebhooks, h.shared.Answer)
	o.Webhooks = h.shared
	return nil
}

// lead delivers for all nodes until ctx ends.
func (h *hooks) lead(ctx context.Context, epoch int64) {
	if err := h.shared.Lead(ctx, epoch); err != nil {
		h.log.Error().Err(err).Msg("webhooks")
	}
}

// run delivers events of the host until the function that it returns is called, which waits.
func (h *hooks) run(ctx context.Context, at *host.Host) (stop func()) {
	if h == nil {
		return func() {}
	}
	h.open = webhook.OpenAt(at)
	ctx, cancel := context.WithCancel(ctx)
	var run sync.WaitGroup
	run.Go(func() {
		if h.shared != nil {
			h.node.Lead(ctx, webhook.AboutWebhooks, h.lead)
		} else {
			h.hub.Run(ctx)
		}
	})
	return func() { cancel(); run.Wait() }
}
