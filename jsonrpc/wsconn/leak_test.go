package wsconn_test

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// TestNoLeak checks that connections leave no goroutine behind, however they end. It
// polls, because goroutines that net/http starts for a handshake end a little later.
func TestNoLeak(t *testing.T) {
	url, accepted := serve(t, wsconn.Options{})
	before := runtime.NumGoroutine()
	for i := range 20 {
		c := must.Get(wsconn.Dial(t.Context(), url, wsconn.Options{}))(t)
		server := <-accepted
		received := make(chan error, 1)
		go func() { _, err := server.Recv(t.Context()); received <- err }()
		if i%2 == 0 {
			c.Close()
		} else {
			_ = c.CloseReason(wsconn.CloseNormal, "")
		}
		if err := <-received; errors.Is(err, io.EOF) != (i%2 == 1) {
			t.Errorf("Recv = %v", err)
		}
		server.Close()
	}
	testkit.Eventually(t, testkit.Patience, "the goroutines are gone", func() bool { return runtime.NumGoroutine() <= before })
}
