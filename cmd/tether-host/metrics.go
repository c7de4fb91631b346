package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"tether/host"
	"tether/internal/metrics"
	"tether/internal/version"
)

// serveMetrics serves the metrics of the host and its node at an address of their own, without a token: they contain no names and no text.
// The returned function ends that.
func (s *settings) serveMetrics(ctx context.Context, h *host.Host) (stop func(), err error) {
	if s.metrics == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.metrics)
	if err != nil {
		return nil, &usageError{fmt.Sprintf("--metrics: %v", err), "give a free address such as 127.0.0.1:9188"}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var m metrics.Text
		m.Gauge("tether_node_info", "The host's version.", 1, "version", version.Text())
		h.Metrics(&m)
		if s.node != nil {
			s.node.Metrics(&m)
		}
		m.Runtime()
		m.Answer(w)
	})
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until it is closed
	}()
	return func() { _ = server.Close(); <-done }, nil
}
