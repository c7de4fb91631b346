package jsonrpc_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"tether/jsonrpc"
)

func TestCallBulkIsABarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		seen := 0
		server := jsonrpc.NewPeer(b, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) {
			if r.IsNotification() {
				seen++
				return
			}
			r.Reply(seen)
		})})
		client := jsonrpc.NewPeer(a, jsonrpc.Options{})
		go server.Run(t.Context())
		defer server.Close()
		for i := range 100 { // queued before anything is written
			if err := client.SendRaw(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"n","params":{"i":%d}}`, i)); err != nil {
				t.Fatal(err)
			}
		}
		go client.Run(t.Context())
		defer client.Close()
		var before int
		if err := client.CallBulk(t.Context(), "count", nil, &before); err != nil || before != 100 {
			t.Errorf("CallBulk was answered after %d of 100 messages (%v)", before, err)
		}
	})
}
