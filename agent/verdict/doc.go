// Package verdict judges runs: whether each was good or failing, since when and at which
// commit a series of runs fails, and what one run printed that another did not. It is
// pure: no I/O, no clock; what it knows of commits comes from a Graph.
//
//	v := verdict.Judge(slices.Values(runs), graph) // the newest run first
//	fmt.Println(v.State, v.Since)
package verdict
