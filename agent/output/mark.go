package output

import (
	"tether/agent/redact"
	"tether/vocab"
)

// MarkKind is the kind of event at a point of the stream.
type MarkKind uint8

// The marks of a terminal, in the words of the protocol's actions.
const (
	MarkDetection       MarkKind = iota + 1 // terminal/commandDetectionAvailable
	MarkCommandExecuted                     // Command is set
	MarkCommandFinished                     // Command is set, with its exit code and duration
	MarkTitle                               // Text is the new title
	MarkCwd                                 // Text is the new directory, an absolute path
	MarkResized                             // Size is set
	MarkExited                              // Exit is set; the last event of a terminal
	MarkCleared                             // the output before it was forgotten: terminal/cleared
)

// Mark is an event between bytes of the stream. Earlier items have offsets smaller than
// or equal to Off, later ones larger or equal.
type Mark struct {
	Kind    MarkKind
	Off     int64 // raw offset
	Text    string
	Size    Size
	Command vocab.Command
	Exit    vocab.Exit
}

// Offset returns Off.
func (m Mark) Offset() int64 { return m.Off }

// mask masks the texts in m for hosts.
func (m *Mark) mask(rules *redact.Rules) {
	m.Text = rules.Redact(m.Text)
	m.Command.Show(rules.Redact)
}

// markCost is the memory of one mark in bytes, without its text, which is counted with
// the log.
const markCost = 256
