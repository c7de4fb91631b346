package adopt

import (
	"fmt"
	"io"
	"strings"
)

var Exactly = exact

// Read runs a reader in this process until the pane ends or out fails.
func Read(p Pane, nonce string, out io.Writer) int {
	r := &reader{socket: p.Socket, pane: p.Target.Pane, pid: p.Pid, server: p.Server, nonce: nonce, out: out, hub: &hub{socket: p.Socket}}
	return r.run()
}

// Reply reads lines of the control mode in which a reply with the token is expected. It
// returns the reply's parts, nil if there is none, and all output of panes.
func Reply(token, text string) (parts []string, output string) {
	l, p := newLines(strings.NewReader(text)), parser{}
	p.expect(token)
	for {
		line, err := l.next()
		if err != nil {
			return parts, output
		}
		switch e := p.line(line); e.kind {
		case kindOutput:
			if len(e.data) == 0 {
				panic("output without a byte, whose first one the reader looks at")
			}
			output += string(e.data)
		case kindReply:
			for i := range e.parts {
				parts = append(parts, e.parts[i].text())
			}
		}
	}
}

// SizeIn returns the size of a pane in layouts, "" if it is not there.
func SizeIn(layouts, pane string) string {
	size, ok := sizeIn(layouts, pane)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%dx%d", size.Cols, size.Rows)
}

// Styled returns the lines of a capture, each with a style of its own.
func Styled(lines [][]byte) []string {
	p := part{lines: lines}
	return p.styled()
}
