package jsonrpc_test

import (
	"context"
	"fmt"
	"sync"

	"tether/internal/testkit"
	"tether/jsonrpc"
)

// Two peers over an in-memory pair. Over a network, the channels come from package
// wsconn.
func Example() {
	a, b := testkit.Channels()
	server := jsonrpc.NewPeer(b, jsonrpc.Options{
		Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) {
			switch r.Method {
			case "upper":
				_ = r.Reply("HELLO")
			default:
				_ = r.ReplyError(jsonrpc.MethodNotFound(r.Method))
			}
		}),
	})
	client := jsonrpc.NewPeer(a, jsonrpc.Options{})

	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for _, p := range []*jsonrpc.Peer{client, server} {
		wg.Go(func() { _ = p.Run(ctx) })
	}

	var result string
	err := client.Call(ctx, "upper", []string{"hello"}, &result)
	fmt.Println(result, err)
	fmt.Println(client.Call(ctx, "lower", nil, nil))
	cancel()
	wg.Wait()

	// Output:
	// HELLO <nil>
	// lower: unknown method "lower" (method not found)
}
