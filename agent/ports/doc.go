// Package ports chooses TCP ports for servers that terminals run, so that servers of
// several checkouts do not get in each other's way, and each finds its own again.
//
//	k := ports.New(ports.Options{Keep: path})
//	kept, err := k.Keep(ports.Auto, "/home/me/src/app", "web")
//	command = kept.Fill(command...)
//	kept.Begin(nil) // nobody else gets it for 30 s
package ports
