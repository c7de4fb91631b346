package holder

// Direct has take called with output as it arrives, by the goroutine that reads the
// connection, while Read or WaitReadable waits for it: no other goroutine must be woken
// then. take must not block, nor keep p. If it returns false it has taken nothing, and the
// output is Read's. What it has taken counts as taken. Direct must be called
// before StreamFrom.
func (c *Client) Direct(take func(p []byte) bool) { c.direct = take }

// maxDirect is how much is given to Direct's function at a time.
const maxDirect = 32 << 10 // bytes

// give has p taken where it arrives, if it can be.
func (c *Client) give(p []byte) bool {
	c.mu.Lock()
	in := &c.in
	in.taking = in.waiting && !c.detached
	given := in.taking
	c.mu.Unlock()
	if !given {
		return false
	}
	taken := c.direct(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	in.taking = false
	if taken {
		in.end += int64(len(p))
		in.pos = in.end
	}
	if c.detached || c.exit != nil {
		c.changed.Broadcast()
	}
	return taken
}

// acknowledgeDirect is acknowledge for what was given. If more has come already,
// it waits for more to acknowledge. It is called by the goroutine that reads, which must
// not wait for the end of the connection.
func (c *Client) acknowledgeDirect(more bool) {
	if off := c.toAcknowledge(more); off > 0 {
		_ = c.write(appendTaken(nil, off, c.typed.rest())) // if it fails, so does the next read
	}
}
