// Package adoptions keeps panes of other programs adopted: it makes them terminals when
// the person asks or a rule of the configuration says so, knows for the next daemon
// which they are, and adopts a pane again whose reader has ended although the pane
// lives. Package adopt finds the panes and reads them.
//
//	k := adoptions.New(adoptions.Options{Access: pool.As(term.User), Start: …, Find: …, List: …})
//	go k.Run(ctx)
//	h, err := k.Adopt(ctx, adoptions.Request{Pane: "tmux:%3"})
package adoptions
