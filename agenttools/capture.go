package agenttools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

	"tether/screen"
)

// maxWindow bounds the output that is examined for one answer, in bytes.
const maxWindow = 1 << 20

// capture is a piece of a terminal's output.
type capture struct {
	data  []byte
	sizes []resize
	steps []step
	from  int64 // offset at which the reading began
	next  int64 // offset after the capture
	lost  int64 // number of bytes that were dropped before they could be read
	front int   // number of bytes that dropFront has removed before data
	masks int   // number of masked places
}

// resize is a change of the terminal's size, which applies from data[at] on.
type resize struct{ at, cols, rows int }

// step says that data[:at] ends at an offset. at counts from the first byte that was
// read.
type step struct {
	at  int
	off int64
}

// take reads the available output from an offset on, at most limit bytes and less than
// minBuffer more. It does not wait for output.
func take(ctx context.Context, t Terminal, from int64, limit int) (*capture, error) {
	rd, err := t.Read(from)
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	c := &capture{from: from, next: from, data: make([]byte, 0, min(limit, 64<<10)+minBuffer)}
	for len(c.data) < limit && ctx.Err() == nil {
		room := limit - len(c.data)
		if c.grow(room); room < minBuffer && len(c.data) > 0 {
			break // a Reader needs a buffer of minBuffer; the next call gets the rest
		}
		ev, ok, err := rd.TryNext(c.data[len(c.data):min(cap(c.data), len(c.data)+max(room, minBuffer))])
		if errors.Is(err, io.EOF) || err == nil && !ok {
			break
		}
		if err != nil {
			return nil, err
		}
		c.add(ev)
	}
	return c, ctx.Err()
}

// minBuffer is the size of the smallest buffer that a Reader accepts, in bytes.
const minBuffer = 64

func (c *capture) grow(room int) {
	if cap(c.data)-len(c.data) < minBuffer {
		bigger := make([]byte, len(c.data), len(c.data)+min(max(len(c.data), minBuffer), max(room, minBuffer)))
		copy(bigger, c.data)
		c.data = bigger
	}
}

// add adds an event. Its data, if any, is already in the array of c.data, after the end
// of the slice.
func (c *capture) add(ev Event) {
	c.next = ev.Off
	c.lost += ev.Lost
	c.masks += ev.Masked
	c.data = c.data[:len(c.data)+len(ev.Data)]
	c.steps = append(c.steps, step{len(c.data), ev.Off})
	if ev.Resized != nil {
		c.sizes = append(c.sizes, resize{len(c.data), ev.Resized[0], ev.Resized[1]})
	}
}

// trimStart drops everything before the first new line, if there is one in the first 4
// KB. A capture that does not begin at the start of the output may begin within a line,
// or even within an escape sequence.
func (c *capture) trimStart() {
	const soon = 4 << 10
	if i := bytes.IndexByte(c.data[:min(len(c.data), soon)], '\n'); i >= 0 {
		c.dropFront(i + 1)
	}
}

func (c *capture) dropFront(n int) {
	c.data = c.data[n:]
	c.front += n
	for i := range c.sizes {
		c.sizes[i].at = max(c.sizes[i].at-n, 0)
	}
}

// endAt cuts the capture to its first n bytes and sets next to the offset after them. The
// bytes of a step lie right before its offset, because a Reader ends each piece where it
// leaves something out.
func (c *capture) endAt(n int) {
	if n == len(c.data) {
		return
	}
	c.data = c.data[:n]
	n += c.front
	i, _ := slices.BinarySearchFunc(c.steps, n, func(s step, n int) int { return s.at - n })
	c.next = max(c.steps[i].off-int64(c.steps[i].at-n), c.from)
}

// render returns a screen of the terminal's size after the output of the capture. A
// change of size in the capture resizes it.
func (c *capture) render(ctx context.Context, i Info) (*screen.Screen, error) {
	s := screen.New(i.Cols, i.Rows)
	s.ShowLinks()
	const most = 64 << 10 // bytes between two looks at ctx
	sizes := c.sizes
	for at := 0; at < len(c.data); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := min(at+most, len(c.data))
		for len(sizes) > 0 && sizes[0].at <= at {
			s.Resize(sizes[0].cols, sizes[0].rows)
			sizes = sizes[1:]
		}
		if len(sizes) > 0 {
			end = min(end, sizes[0].at)
		}
		s.Write(c.data[at:end])
		at = end
	}
	for _, z := range sizes {
		s.Resize(z.cols, z.rows)
	}
	return s, nil
}
