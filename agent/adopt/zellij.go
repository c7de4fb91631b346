package adopt

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"tether/platform/proc"
)

// zellij is a session of zellij 0.44 or later, which its command tells about:
// https://zellij.dev/documentation/cli-actions
type zellij struct {
	program string // its path, or its name in PATH
	session string
	socket  string
	server  proc.ID
}

// zellijs returns the sessions that run: those of this user's servers. A session's server
// has its socket, which has the session's name, as an argument.
func zellijs(o Options) (all []teller) {
	program, err := o.lookPath("zellij")
	if err != nil {
		return nil
	}
	processes, err := proc.List()
	if err != nil {
		return nil
	}
	for _, p := range processes {
		argv := proc.Argv(p.Pid)
		if len(argv) == 0 || filepath.Base(argv[0]) != "zellij" {
			continue
		}
		if at := slices.Index(argv, "--server"); at > 0 && at+1 < len(argv) {
			all = append(all, zellij{program, filepath.Base(argv[at+1]), argv[at+1], p.ID})
		}
	}
	return all
}

func (z zellij) action(ctx context.Context, args ...string) ([]byte, error) {
	out, err := run(ctx, nil, z.program, append([]string{"--session", z.session, "action"}, args...)...)
	if err != nil {
		err = fmt.Errorf("zellij session %s: %w (zellij 0.44 or later is needed)", printable(z.session, maxText), err)
	}
	return out, err
}

func (z zellij) panes(ctx context.Context) (all []Pane, err error) {
	out, err := z.action(ctx, "list-panes", "--json")
	if err != nil {
		return nil, err
	}
	var list []struct {
		ID      int    `json:"id"`
		Plugin  bool   `json:"is_plugin"`
		Exited  bool   `json:"exited"`
		Title   string `json:"title"`
		Command string `json:"pane_command"`
		Dir     string `json:"pane_cwd"`
		Cols    int    `json:"pane_content_columns"`
		Rows    int    `json:"pane_content_rows"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("zellij session %s: %w", printable(z.session, maxText), err)
	}
	for _, p := range list {
		if p.Plugin || p.Exited {
			continue
		}
		all = append(all, Pane{
			Target: Target{Program: "zellij", Server: z.session, Pane: strconv.Itoa(p.ID)}, Socket: z.socket, Server: z.server,
			Title: printable(p.Title, maxText), Command: printable(p.Command, maxText), Dir: directory(p.Dir), Size: sizeOf(p.Cols, p.Rows),
		})
	}
	return all, nil
}

func (z zellij) text(ctx context.Context, p Pane, past bool) (picture, error) {
	args := []string{"dump-screen", "--pane-id", "terminal_" + p.Target.Pane, "--ansi"}
	if past {
		args = append(args, "--full")
	}
	out, err := z.action(ctx, args...)
	return picture{text: out}, err
}
