// Package declared keeps up the terminals that the configuration declares: it
// starts them with the daemon, again after their end if they are declared so, and
// ends and starts them when the person says so.
//
//	set := declared.New(declared.Options{Starter: s, Keep: path})
//	set.Begin(settings.Terminal)
//	defer set.Close()
//	all, err := set.Up(ctx, "web")
//
// It knows nothing of ptys: a [Starter] starts a terminal and finds those that
// outlived an earlier daemon. Which terminal is whose is kept in a file, written
// before the terminal starts, so that a daemon that comes after this one, however
// this one ended, starts nothing twice.
package declared
