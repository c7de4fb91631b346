// Package cluster makes a host one of several nodes, over NATS servers that the operator
// runs.
//
//	node, err := cluster.Join(ctx, cluster.Options{Servers: "nats://a,nats://b,nats://c", Name: "main", HostKey: key})
//	defer node.Close()
//	h := host.New(host.Options{Nodes: node, …})
//	go node.Run(ctx, h)
//
// One key-value bucket with three replicas has the state that must not be lost and on
// which all nodes must agree: which node owns each machine's terminals and since which
// epoch, tokens, people, and the owners of clientIds. Each node has a copy of the bucket
// in memory, which a watch keeps up to date.
//
// Everything else goes from node to node, by requests that wait for an answer: changes of
// the catalogue, and the text of a terminal while somebody at another node follows it. A
// request states what its sender already has. So a message that NATS drops is requested
// again, and NATS stores nothing. One request is pending for each pair of nodes, and one
// for each terminal that a node follows. So the traffic between nodes grows with the
// number of nodes that follow a terminal, not with its observers, and a node that does
// not request text holds up the terminal like a slow observer.
package cluster
