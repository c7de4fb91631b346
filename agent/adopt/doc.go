// Package adopt reads panes of other programs that keep terminals, such as tmux: which
// there are ([List], [Find]), and the bytes of one ([Main]).
//
// An adopted pane is an ordinary terminal whose child is a small program, the reader. The
// reader attaches to the multiplexer as a client that sends no keys and no size. It
// writes to its terminal first a picture of the pane (scrollback and screen), then the
// pane's bytes. The pane's own program and its other clients do not notice it, and ending
// the reader leaves no trace there.
//
//	pane, err := adopt.Find(ctx, o, adopt.Target{Program: "tmux", Pane: "%3"})
//	argv := append([]string{tether, "adopt-reader", dir}, adopt.ReaderArgs(pane, false)...)
//	env := adopt.ReaderEnv(os.Getenv, nonce)
//
// Between the pane's bytes are marks of the reader, OSC 633;P with the terminal's nonce,
// see [tether/shellint.KindSize] and [tether/shellint.KindGap]. A pane cannot forge them.
package adopt
