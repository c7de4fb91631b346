// Package notify tells the person what happens in terminals: on the desktop, or at a URL
// that the person has given. The rules are config.Notify.
//
//	t, err := notify.New(notify.Options{Rules: settings.Notify, ...})
//	go t.Run(ctx)
//
// One engine of package events watches for all rules, with one subscription for each
// different condition. Without rules, nothing is watched. A rule gathers what happens
// into messages, as its limits allow, and gives each to the queue of a [Receivers]
// receiver, which sends it by the rules of package deliver. Memory is bounded: per rule a
// few lines and a count, per receiver maxQueue messages.
//
// Agents have no part in it: they can neither see rules and receivers nor change them.
// Text is masked as for hosts.
package notify
