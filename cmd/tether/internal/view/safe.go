package view

import (
	"io"

	"tether/agent/redact"
)

// watchImages bounds the images that a Safe passes on in total, in bytes: as much as
// lend.images allows per minute.
const watchImages = 2 << 20

// Safe passes output on to the person's own terminal without sequences that act on it,
// see redact.Safe: output of others, from another machine or from a file, and earlier
// output of this machine.
type Safe struct {
	out  io.Writer
	safe *redact.Safe
	buf  []byte
}

// NewSafe returns a view that writes to out.
func NewSafe(out io.Writer) *Safe {
	return &Safe{out: out, safe: redact.NewSafe(redact.Options{Images: watchImages})}
}

// NewSilent is NewSafe for output of this machine: links to files work, and neither bells
// nor notifications pass.
func NewSilent(out io.Writer) *Safe {
	return &Safe{out: out, safe: redact.NewSafe(redact.Options{Images: watchImages, FileLinks: true, Silent: true})}
}

// Write implements io.Writer. It fails only if the writer fails.
func (v *Safe) Write(p []byte) (int, error) {
	v.buf = v.safe.Append(v.buf[:0], p)
	return len(p), v.pass()
}

// Close passes on the text that was held back. The Safe must not be used afterwards.
// Close does not close the writer.
func (v *Safe) Close() error {
	v.buf = v.safe.End(v.buf[:0])
	return v.pass()
}

func (v *Safe) pass() error {
	if len(v.buf) == 0 {
		return nil
	}
	_, err := v.out.Write(v.buf)
	return err
}
