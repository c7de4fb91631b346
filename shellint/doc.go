// Package shellint reads shell integration out of a terminal's output: which bytes are
// prompt and command marks, where a command began and ended, its command line and how it
// exited.
//
// [Scanner] takes the raw bytes of one terminal as they arrive. It reports which ranges
// are marks (OSC 133 and OSC 633) or other sequences that some views leave out ([Span]),
// and their meaning ([Mark]). It never copies or changes output: a consumer that must not
// see a class of sequences leaves those spans out. [Tracker] makes commands of marks.
// [Inject] plans how to start a shell so that it writes marks.
//
// It is not a terminal emulator: it knows nothing of cells, modes or colours.
//
// The definition of a mark follows xterm.js, the likely next reader of the output: a
// sequence that xterm.js would take for OSC 133 or 633 is a mark here, however it is
// spelt (leading zeros, C0 bytes in the number, U+009D). An OSC begins at ESC ] or
// U+009D, ends at BEL, ESC \ or U+009C, ends and counts at ESC with anything else, and is
// cancelled by CAN, SUB and other C1 controls. Bytes are not decoded first: a consumer
// that turns them into text must make them valid UTF-8 before it removes spans, because
// terminals skip invalid bytes and that may join a sequence.
package shellint
