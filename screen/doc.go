// Package screen is a terminal emulator. A [Screen] is the grid of cells that a terminal
// shows, with both screens, cursors, modes and incomplete input. It is used in two ways.
//
// As text for readers without a terminal ([New]): the present contents of the screen, and
// all earlier ones. Characters that text cannot show or that could deceive a reader are
// left out: controls, directional and invisible characters, tag characters and variation
// selectors.
//
//	s := screen.New(80, 24)
//	s.Write(output)
//	fmt.Println(s.Text())
//
// As the state of a terminal whose older output is gone ([NewState]): [Screen.Replay]
// returns bytes that bring a fresh terminal of the same size into the same state. These
// bytes and the later output together show the same as all output from the start.
//
// A Screen shows the same as xterm.js, with the character widths of Unicode 16; tests
// compare cells, cursor and modes. It never answers queries, and ignores the palette,
// images, sounds and the keyboard protocols of single terminals.
//
// Tether has its own emulator because no maintained emulator for Go exposes all of its
// state. charmbracelet/x/vt (0.1.0) exposes the cells and the cursor of the visible
// screen, but neither the other screen, saved cursors, scroll region, tab stops and
// modes, nor the incomplete sequence, so that nothing could be replayed. hinshun/vt10x
// knows no wide characters.
//
// Memory is bounded by the size of the screen and by [MaxHistory]; a Screen is not safe
// for concurrent use.
package screen
