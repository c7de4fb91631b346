// Package cluster makes a host one of several nodes, over NATS servers that the operator runs.
//
//	node, err := cluster.Join(ctx, cluster.Options{Servers: "nats://a,nats://b,nats://c", Name: "main", HostKey: key})
//	defer node.Close()
//	h := host.New(host.Options{Nodes: node, …})
//	go node.Run(ctx, h)
//
// One key-value bucket with three replicas has what must not be lost and what all must agree on: which node owns the terminals of which machine since
// which epoch, tokens, people, and whose clientIds are. A node has a copy of it in memory, which a watch keeps up to date.
//
// Everything else is told from node to node, by requests that wait for an answer: changes of the catalogue, and the text of a terminal while somebody
// at another node follows it. Who asks says what it has, so that a message which the engine drops is asked for again, and nothing is kept in the engine.
// One request is under way for each pair of nodes, and one for each terminal that a node follows. So what goes between nodes grows with the nodes that
// follow a terminal, not with its observers, and a node that takes nothing is waited for as a slow observer is.
package cluster
