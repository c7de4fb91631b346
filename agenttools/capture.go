package agenttools

import (
	"bytes"
	"context"
	"errors"
	"io"

	"tether/screen"
)

// maxWindow bounds the output that is looked at for one answer, in bytes.
const maxWindow = 1 << 20

// capture is a piece of a terminal's output.
type capture struct {
	data  []byte
	sizes []resize
	from  int64 // where it was to begin
	next  int64 // the offset after it
	lost  int64 // bytes that were to be in it and are gone
	front int   // bytes that were dropped before data
	masks int   // places that are masked
}

// resize is a change of the terminal's size before data[at].
type resize struct{ at, cols, rows int }

// take reads available output from an offset on, at most limit bytes.
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
			break // a Reader takes no smaller buffer, and the rest comes with the next call
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

// minBuffer is the smallest buffer that a Reader takes, in bytes.
const minBuffer = 64

func (c *capture) grow(room int) {
	if cap(c.data)-len(c.data) < minBuffer {
		bigger := make([]byte, len(c.data), len(c.data)+min(max(len(c.data), minBuffer), max(room, minBuffer)))
		copy(bigger, c.data)
		c.data = bigger
	}
}

// add takes an event whose data, if any, is in the room behind c.data.
func (c *capture) add(ev Event) {
	c.next = ev.Off
	c.lost += ev.Lost
	c.masks += ev.Masked
	c.data = c.data[:len(c.data)+len(ev.Data)]
	if ev.Resized != nil {
		c.sizes = append(c.sizes, resize{len(c.data), ev.Resized[0], ev.Resized[1]})
	}
}

// trimStart drops the rest of a line, if another begins soon: a capture that does not begin with the output begins somewhere in a line,
// perhaps in an escape sequence.
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

// endAt cuts the capture to its first n bytes and finds their offset. A Reader leaves parts of the stream out, so a subtraction is not
// enough.
func (c *capture) endAt(ctx context.Context, t Terminal, n int) error {
	if n == len(c.data) {
		return nil
	}
	rd, err := t.Read(c.from)
	if err != nil {
		return err
	}
	defer rd.Close()
	c.data = c.data[:n]
	c.next = c.from
	n += c.front
	buf := make([]byte, 32<<10)
	for n > 0 && ctx.Err() == nil {
		ev, ok, err := rd.TryNext(buf[:min(max(n, minBuffer), len(buf))])
		if err != nil || !ok {
			return err
		}
		if len(ev.Data) > n {
			c.next = ev.Off - int64(len(ev.Data)-n) // less than minBuffer bytes; a cut among them is rare and harmless
			return nil
		}
		n -= len(ev.Data)
		c.next = ev.Off
	}
	return ctx.Err()
}

// render shows the capture on a screen that has the terminal's size.
func (c *capture) render(ctx context.Context, i Info) (*screen.Screen, error) {
	s := screen.New(i.Cols, i.Rows)
	const step = 64 << 10 // bytes between two looks at ctx
	sizes := c.sizes
	for at := 0; at < len(c.data); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		end := min(at+step, len(c.data))
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
