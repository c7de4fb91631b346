// Package client connects to an agent host over AHP.
//
// A Conn is one initialized connection: the daemon's uplink uses it to lend terminals,
// tests and tools make single requests with it. An Observer stays connected: it follows
// the root state and chosen terminals, keeps their reduced state within bounds,
// reconnects, and hands events to a consumer that pulls them.
//
//	o := client.NewObserver(client.ObserverOptions{Endpoint: client.Endpoint{URL: "ws://127.0.0.1:8081"}, ClientID: id})
//	go o.Run(ctx)
//	o.Follow("ahp-terminal:/6d1e")
//	for {
//		e, err := o.Next(ctx)
//		…
//	}
//
// It does not decide which terminals are lent (agent/uplink does), and does not display
// them (the command does).
package client
