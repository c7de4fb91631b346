package adopt

import (
	"bytes"
	"context"
	"fmt"
)

// oldTmux is a server of tmux before 3.2, which cannot tell every byte.
type oldTmux struct{ socket string }

func (m oldTmux) panes(ctx context.Context) (all []Pane, err error) {
	list, err := listServer(ctx, "tmux", m.socket, "")
	for _, p := range list {
		all = append(all, p.Pane)
	}
	return all, err
}

func (m oldTmux) text(ctx context.Context, p Pane, past bool) (picture, error) {
	args := []string{"-u", "-S", m.socket, "capture-pane", "-e", "-p", "-t", p.Target.Pane}
	if past {
		args = append(args, "-S", fmt.Sprint(-maxPast))
	}
	args = append(args, ";", "display-message", "-p", "-t", p.Target.Pane, "#{cursor_y} #{cursor_x}")
	out, err := run(ctx, nil, "tmux", args...)
	if err != nil {
		return picture{}, err
	}
	out = bytes.TrimSuffix(out, []byte("\n"))
	end := bytes.LastIndexByte(out, '\n') + 1
	var row, col int
	if _, err := fmt.Sscan(string(out[end:]), &row, &col); err != nil {
		return picture{}, fmt.Errorf("tmux at %s tells no cursor: %w", m.socket, err)
	}
	next := picture{text: out[:end], cursor: !past}
	if next.cursor {
		next.text = fmt.Appendf(bytes.TrimSuffix(next.text, []byte("\n")), "\x1b[%d;%dH", row+1, col+1)
	}
	return next, nil
}
