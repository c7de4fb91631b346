// Package declared keeps up the terminals that the configuration declares: it starts them
// with the daemon, restarts them after their end if so declared, and ends and starts them
// on the person's command.
//
//	set := declared.New(declared.Options{Starter: s, Keep: path})
//	set.Begin(settings.Terminal)
//	defer set.Close()
//	all, err := set.Up(ctx, nil, "web")
//
// It knows nothing of ptys: a [Starter] starts a terminal and finds those that outlived
// an earlier daemon. A file, written before a terminal starts, records which terminal
// belongs to which declaration, so that the next daemon, however this one ended, starts
// nothing twice.
package declared
