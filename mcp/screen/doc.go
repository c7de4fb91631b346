// Package screen turns what a program wrote to a terminal into text that can
// be read: what stands on the screen now, and everything that stood there
// before.
//
// A [Screen] is the grid of cells that a terminal emulator would show. It
// obeys cursor movement, erasing, scrolling, line editing and the alternate
// screen, and ignores what changes no text: colours, titles, mouse modes,
// queries. It never answers. What text cannot show or could be used to deceive
// a reader is left out: controls, directional and invisible characters, tag
// characters and variation selectors.
//
// It is a package of our own because the two maintained emulators for Go keep
// styles, images and input, and bring a dozen modules; this needs the text
// alone. Tests compare it with xterm.js.
//
//	s := screen.New(80, 24)
//	s.Write(output)
//	fmt.Println(s.Text())
//
// Memory is bounded by the size of the screen and by [MaxHistory]; a Screen is
// not safe for concurrent use.
package screen
