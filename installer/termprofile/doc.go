// Package termprofile makes tether's shell the shell of terminal programs: it has their
// configuration files, and the edits in each. It only computes; cmd/tether shows the
// edits and writes them.
//
//	for _, p := range termprofile.All(system, "/usr/bin/tether") {
//		for _, place := range p.Places {
//			after, err := place.Added(before, false)
package termprofile
