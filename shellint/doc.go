// Package shellint reads shell integration out of a terminal's output: which bytes are prompt and command
// marks, where a command began and ended, what it was and how it exited.
//
// [Scanner] takes the raw bytes of one terminal as they come and says which ranges of them are marks (OSC 133 and
// OSC 633) or other sequences some views leave out ([Span]), and what those say ([Mark]). It never copies or
// changes output: a consumer that must not see a class of sequences leaves those spans out. [Tracker] makes commands
// of marks. [Inject] plans how to start a shell so that it writes marks.
//
// It is not a terminal emulator: it knows nothing of cells, modes or colours.
//
// What is a mark follows xterm.js, the likely next reader of the output, wherever that decides: a sequence that it
// would take for OSC 133 or 633 is one here, however it is spelt (leading zeros, C0 bytes in the number, U+009D). An
// OSC begins at ESC ] or U+009D, ends at BEL, ESC \ or U+009C, ends and counts at ESC with anything else, and is
// cancelled by CAN, SUB and other C1 controls. Bytes are not decoded first: a consumer that makes text of them must
// make them valid UTF-8 before it takes spans out, because terminals skip invalid bytes and may so join a sequence.
package shellint
