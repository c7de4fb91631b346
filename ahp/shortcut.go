package ahp

// In a flood, nearly every message is of one of two kinds and has the form that this
// package writes. The functions here find the parts of such a message without scanning
// its text, and refuse messages of any other form. The parts equal those of Decode if
// Data is a valid JSON string, which the caller must check.

// CutOutput reads a message in the form of AppendOutput. Otherwise it returns false, and
// d is unchanged. As long as the channel stays the same, it does not allocate.
func (d *Dispatch) CutOutput(msg []byte) bool {
	c := cutter{msg}
	channel := c.head(dispatchHead)
	c.literal(`,"clientSeq":`)
	seq := c.number()
	c.literal(`,"action":{"type":"` + ActionTerminalOutput + `","data":`)
	data, offset := c.str(), int64(-1)
	if c.begins(`,"_meta":{"` + OffsetKey + `":`) {
		offset = c.number()
		c.literal("}")
	}
	if !c.ends("}}}") {
		return false
	}
	*d = Dispatch{Channel: same(d.Channel, channel), ClientSeq: seq, HasClientSeq: true, Kind: ActionTerminalOutput, Data: data, Offset: offset}
	return true
}

// CutData reads a message in the form of AppendData without an origin. Otherwise it
// returns false, and v is unchanged. As long as the channel stays the same, it does not
// allocate.
func (v *EnvelopeView) CutData(msg []byte) bool {
	c := cutter{msg}
	channel := c.head(envelopeHead + `{"channel":`)
	c.literal(`,"serverSeq":`)
	seq := c.number()
	c.literal(`,"action":`)
	action := c.rest
	c.literal(`{"type":"` + ActionTerminalData + `","data":`)
	data := c.str()
	if !c.ends(`}}` + envelopeTail) {
		return false
	}
	*v = EnvelopeView{Channel: same(v.Channel, channel), ServerSeq: seq, Kind: ActionTerminalData, Action: action[:len(action)-len(`}`+envelopeTail)], Data: data}
	return true
}

func same(old string, now []byte) string {
	if old == string(now) {
		return old
	}
	return string(now)
}

// cutter parses a message from its beginning. A mismatch empties rest.
type cutter struct{ rest []byte }

func (c *cutter) begins(with string) bool {
	if len(c.rest) < len(with) || string(c.rest[:len(with)]) != with {
		return false
	}
	c.rest = c.rest[len(with):]
	return true
}

func (c *cutter) literal(text string) {
	if !c.begins(text) {
		c.rest = nil
	}
}

// ends reports whether rest is exactly text.
func (c *cutter) ends(text string) bool { return string(c.rest) == text }

// maxChannel is the longest channel that head accepts, in bytes.
const maxChannel = 256

// head consumes text and a quoted channel, and returns the channel without its quotes.
// The channel must be printable ASCII without an escape.
func (c *cutter) head(text string) []byte {
	c.literal(text + `"`)
	for i, b := range c.rest[:min(len(c.rest), maxChannel)] {
		switch {
		case b == '"' && i > 0:
			channel := c.rest[:i]
			c.rest = c.rest[i+1:]
			return channel
		case b <= ' ', b >= 0x7f, b == '\\', b == '"':
			c.rest = nil
			return nil
		}
	}
	c.rest = nil
	return nil
}

// number consumes a number of at most 18 digits, without a sign.
func (c *cutter) number() (n int64) {
	i := 0
	for i < min(len(c.rest), 18) && c.rest[i] >= '0' && c.rest[i] <= '9' {
		n = n*10 + int64(c.rest[i]-'0')
		i++
	}
	if i == 0 || i > 1 && c.rest[0] == '0' {
		c.rest = nil
		return 0
	}
	c.rest = c.rest[i:]
	return n
}

// str consumes a string and returns it with its quotes. It does not check what is between
// them.
func (c *cutter) str() []byte {
	if len(c.rest) == 0 || c.rest[0] != '"' {
		c.rest = nil
		return nil
	}
	end := skipString(c.rest, 0)
	text := c.rest[:end:end]
	c.rest = c.rest[end:]
	return text
}
