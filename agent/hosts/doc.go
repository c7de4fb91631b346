// Package hosts is the remote hosts that this machine is paired with: the list of them
// with their credentials, how they are paired and forgotten, and one link for each.
//
// It is the local door's [local.Hosts]. [Open] reads the list, [Paired.Link] connects;
// [Endpoint], [Names] and [ByKey] read the list for programs beside the daemon.
package hosts
