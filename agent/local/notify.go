package local

import (
	"context"
	"net/http"

	"tether/agent/localapi"
)

// Notifier has the rules that tell the person what happens, and the URLs to which they
// send. Only the person sees and changes them; no answer contains a URL.
type Notifier interface {
	// List returns them. With reach, it asks each receiver whether it is there.
	List(ctx context.Context, reach bool) localapi.Notifications
	// Add gives a URL a name, or replaces the one of that name.
	Add(name string, r localapi.ReceiverRequest) (localapi.NotifyReceiver, error)
	Remove(name string) error
	// Test sends a message to a receiver, or to the desktop, once.
	Test(ctx context.Context, name string) error
}

func (s *Server) notifications(w http.ResponseWriter, r *http.Request) error {
	return reply(w, s.opts.Notifier.List(r.Context(), r.URL.Query().Get("reach") == "1"))
}

func (s *Server) addReceiver(w http.ResponseWriter, r *http.Request, req localapi.ReceiverRequest) error {
	added, err := s.opts.Notifier.Add(r.PathValue("name"), req)
	return answer(w, added, err)
}

func (s *Server) removeReceiver(w http.ResponseWriter, r *http.Request) error {
	return answer(w, struct{}{}, s.opts.Notifier.Remove(r.PathValue("name")))
}

func (s *Server) testReceiver(w http.ResponseWriter, r *http.Request) error {
	return answer(w, struct{}{}, s.opts.Notifier.Test(r.Context(), r.PathValue("name")))
}
