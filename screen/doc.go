// Package screen is a terminal emulator. A [Screen] is the grid of cells that a terminal shows, with both screens, cursors, modes and what
// of the input is not complete. It is used in two ways.
//
// As text for readers who have no terminal ([New]): what stands on the screen now, and everything that stood there before. What text
// cannot show or could be used to deceive a reader is left out: controls, directional and invisible characters, tag characters and
// variation selectors.
//
//	s := screen.New(80, 24)
//	s.Write(output)
//	fmt.Println(s.Text())
//
// As the state of a terminal whose older output is gone ([NewState]): [Screen.Replay] returns bytes that make a fresh terminal of the
// same size the same, so that they and what is printed later show what somebody sees who was there from the start.
//
// It shows what xterm.js shows, with the widths of Unicode 16; tests compare cells, cursor and modes. It never answers, and ignores the
// palette, images, sounds and the keyboard protocols of single terminals.
//
// It is a package of our own because no kept-up emulator for Go tells all of its state. charmbracelet/x/vt (0.1.0) tells the cells and the
// cursor of the screen that is shown, but neither the other screen, saved cursors, scroll region, tab stops and modes, nor the sequence
// that is not complete, so that nothing could be replayed. hinshun/vt10x knows no wide characters.
//
// Memory is bounded by the size of the screen and by [MaxHistory]; a Screen is not safe for concurrent use.
package screen
