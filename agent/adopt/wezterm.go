package adopt

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
)

// wezterm is a WezTerm, whose command tells about it:
// https://wezterm.org/cli/cli/get-text.html
type wezterm struct {
	program        string // its path, or its name in PATH
	socket, server string // server: see Target
}

// wezterms returns those of this user that run.
func wezterms(o Options) (all []teller) {
	program, err := o.lookPath("wezterm")
	if err != nil {
		return nil
	}
	dirs := []string{filepath.Join(o.getenv("HOME"), ".local", "share", "wezterm")}
	if dir := o.getenv("XDG_RUNTIME_DIR"); dir != "" {
		dirs = append(dirs, filepath.Join(dir, "wezterm"))
	}
	for _, dir := range dirs {
		found, _ := filepath.Glob(filepath.Join(dir, "gui-sock-*"))
		for _, path := range found {
			all = append(all, wezterm{program, path, path})
		}
	}
	return all
}

func (w wezterm) cli(ctx context.Context, args ...string) ([]byte, error) {
	out, err := run(ctx, []string{"WEZTERM_UNIX_SOCKET=" + w.socket}, w.program, append([]string{"cli", "--no-auto-start"}, args...)...)
	if err != nil {
		err = fmt.Errorf("WezTerm at %s: %w", w.socket, err)
	}
	return out, err
}

func (w wezterm) panes(ctx context.Context) (all []Pane, err error) {
	conn, server, err := dial(ctx, w.socket)
	if err != nil {
		return nil, err
	}
	conn.Close()
	out, err := w.cli(ctx, "list", "--format", "json")
	if err != nil {
		return nil, err
	}
	var list []struct {
		ID    int    `json:"pane_id"`
		Title string `json:"title"`
		Dir   string `json:"cwd"` // a URL
		Size  struct {
			Cols int `json:"cols"`
			Rows int `json:"rows"`
		} `json:"size"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("WezTerm at %s: %w", w.socket, err)
	}
	for _, p := range list {
		dir := p.Dir
		if u, err := url.Parse(p.Dir); err == nil && u.Scheme == "file" {
			dir = filepath.FromSlash(u.Path)
		}
		all = append(all, Pane{
			Target: Target{Program: "wezterm", Server: w.server, Pane: strconv.Itoa(p.ID)}, Socket: w.socket, Server: server,
			Title: printable(p.Title, maxText), Dir: directory(dir), Size: sizeOf(p.Size.Cols, p.Size.Rows),
		})
	}
	return all, nil
}

func (w wezterm) text(ctx context.Context, p Pane, past bool) (picture, error) {
	args := []string{"get-text", "--pane-id", p.Target.Pane, "--escapes"}
	if past {
		args = append(args, "--start-line", strconv.Itoa(-maxPast))
	}
	out, err := w.cli(ctx, args...)
	return picture{text: out}, err
}
