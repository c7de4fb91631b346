// Package client connects to an agent host over AHP.
//
// A Conn is one initialized connection: the uplink of the daemon uses it to lend terminals, tests and tools to ask one
// thing. An Observer stays: it follows the root state and chosen terminals, keeps their reduced state within bounds,
// reconnects, and tells what happens to whoever pulls.
//
//	o := client.NewObserver(client.ObserverOptions{Endpoint: client.Endpoint{URL: "ws://127.0.0.1:8081"}, ClientID: id})
//	go o.Run(ctx)
//	o.Follow("ahp-terminal:/6d1e")
//	for {
//		e, err := o.Next(ctx)
//		…
//	}
//
// Not here: deciding what is lent (agent/uplink) and showing what is seen (the command).
package client
