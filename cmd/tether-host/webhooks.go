package main

import (
	"context"
	"errors"
	"strings"
	"sync"

	"tether/host"
	"tether/host/access"
	"tether/host/login"
	"tether/host/rights"
	"tether/host/webhook"
	"tether/host/webpush"
)

// hooks deliver events to URLs that agents name, and to browsers.
type hooks struct {
	all  []interface{ Run(context.Context) }
	host *host.Host // set by run
}

// openHooks lets agents subscribe to webhooks, with --webhooks, and browsers to
// notifications, with --push. It must be called after openTokens.
func (s *settings) openHooks(o *host.Options) (*hooks, error) {
	h := &hooks{}
	if !s.webhooks && !s.push {
		return h, nil
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
		return nil, errors.New("--webhooks and --push need a place for tokens: give one with --tokens FILE")
	}
	options := webhook.Options{Find: people.Tokens().Named, Allow: allow, Audit: o.Audit, Logger: o.Logger,
		Open: func(ctx context.Context, p rights.Principal, r webhook.Request) (webhook.Source, bool, error) {
			return webhook.OpenAt(h.host.Agents())(ctx, p, r)
		},
		Lasting: func(p rights.Principal) context.Context { return h.host.Lasting(p) }}
	if s.webhooks {
		err = s.openWebhooks(h, options, path, o)
	}
	if s.push && err == nil {
		err = s.openPushes(h, options, path, o)
	}
	return h, err
}

func (s *settings) openWebhooks(h *hooks, options webhook.Options, path string, o *host.Options) error {
	if s.node == nil {
		options.Place = access.OwnFile(besideTokens(path, "webhooks.json"))
		hub, err := webhook.New(options)
		h.all, o.Webhooks = append(h.all, hub), webhook.Door{Hub: hub}
		return err
	}
	nodes, err := s.leader(path, "webhooks", "webhooks", o.Logger)
	if err != nil {
		return err
	}
	shared, err := webhook.NewShared(nodes, options.Find, func(kept access.Place) (*webhook.Hub, error) {
		options.Place = kept
		return webhook.New(options)
	})
	h.all, o.Webhooks = append(h.all, shared), shared
	return err
}

func (s *settings) openPushes(h *hooks, options webhook.Options, path string, o *host.Options) error {
	secret, err := hostKey(keyPath(path))
	if err != nil {
		return err
	}
	key, err := webpush.KeyOf(secret.Seed())
	if err != nil {
		return err
	}
	options.Push = &webhook.Push{SigningKey: key, Contact: s.contact(),
		Login: func(b login.Browser) (rights.Principal, bool) { return h.host.Logins().Of(b) },
		Sees:  func(p rights.Principal, terminal string) bool { return h.host.Sees(p, terminal) }}
	options.Open = func(ctx context.Context, p rights.Principal, r webhook.Request) (webhook.Source, bool, error) {
		return webhook.OpenKinds(h.host.Agents())(ctx, p, r)
	}
	options.Find, options.Lasting = nil, nil
	if s.node == nil {
		options.Place = access.OwnFile(besideTokens(path, "pushes.json"))
		hub, err := webhook.New(options)
		h.all, o.Pushes = append(h.all, hub), hub
		return err
	}
	nodes, err := s.leader(path, "pushes", "pushes", o.Logger)
	if err != nil {
		return err
	}
	shared, err := webhook.NewSharedPushes(nodes, key, func(kept access.Place) (*webhook.Hub, error) {
		options.Place = kept
		return webhook.New(options)
	})
	h.all, o.Pushes = append(h.all, shared), shared
	return err
}

// contact is whom operators of push services can ask about this host's requests. Some
// services refuse requests without it, or with an address at localhost.
func (s *settings) contact() string {
	if strings.HasPrefix(s.publicURL, "https://") {
		return s.publicURL
	}
	return "mailto:tether-host@example.invalid"
}

// run delivers events of the host until the function that it returns is called, which
// waits.
func (h *hooks) run(ctx context.Context, at *host.Host) (stop func()) {
	h.host = at
	ctx, cancel := context.WithCancel(ctx)
	var run sync.WaitGroup
	for _, one := range h.all {
		run.Go(func() { one.Run(ctx) })
	}
	return func() { cancel(); run.Wait() }
}
