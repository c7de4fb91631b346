// Package leader has what services share that one node of a host, the leader, does for all nodes: questions of the other nodes to it, and the
// document that it keeps for the next leader. Both are sealed, since they pass through the nodes' engine, whose operator must not be able to
// act for people.
package leader
