// Package runs keeps what terminals print in a history, and answers about it as far as
// the one who asks may know.
//
// A recorder reads every terminal that is not private and not below a directory that is
// never lent, as hosts would see it, and adds that to the history. It never holds a
// child: in a flood it takes the first output and then samples of the rest.
//
//	r := runs.Open(runs.Options{History: h, Access: pool.As(term.User)})
//	end := r.Record(ctx)
//	for run := range r.As(runs.Asker{Actor: term.User}).List(history.Query{}) { … }
//
// A stored run is an agenttools.Terminal, so that everything that reads terminals reads
// runs, too.
package runs
