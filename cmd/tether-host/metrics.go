package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"tether/host"
	"tether/internal/metrics"
	"tether/internal/version"
)

// serveMetrics serves the metrics of the host and its node at an address of their own,
// without a token: they contain no names and no text. It prints their URL, since the
// system chooses port 0. The returned function ends that.
func (s *settings) serveMetrics(ctx context.Context, h *host.Host, stderr io.Writer) (stop func(), err error) {
	if s.metrics == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.metrics)
	if err != nil {
		return nil, &usageError{fmt.Sprintf("--metrics: %v", err), "give a free address such as 127.0.0.1:9188"}
	}
	if _, err := fmt.Fprintf(stderr, "metrics: http://%s/metrics\n", listener.Addr()); err != nil {
		listener.Close()
		return nil, fmt.Errorf("standard error: %w", err)
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
