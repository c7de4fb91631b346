package adopt

import (
	"context"
	"fmt"
)

// oldTmux is a server of tmux before 3.2, which cannot tell every byte.
type oldTmux struct{ socket string }

func (m oldTmux) panes(ctx context.Context) (all []Pane, err error) {
	list, err := listServer(ctx, "tmux", m.socket)
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
	args = append(args, ";", "display-message", "-p", "-t", p.Target.Pane, "\x1b[#{e|+:#{cursor_y},1};#{e|+:#{cursor_x},1}H")
	out, err := run(ctx, nil, "tmux", args...)
	return picture{text: out, cursor: !past}, err
}
