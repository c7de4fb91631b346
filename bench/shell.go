package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tether/platform/proc"
	"tether/platform/pty"
)

// The floors of a shell were set on a machine where one at a bare pty printed its prompt
// after referenceShell.
const (
	floorShell     = 60.0 // ms until the prompt
	floorShellTmux = 2.0  // times tmux new-session
	referenceShell = 2.5  // ms

	shellPrompt  = "bench-prompt"
	shellTimeout = time.Minute
)

// shellPart starts the same shell at a pty of its own in turn: by itself, as a tether
// terminal, and in a new session of a tmux server that runs. Each time counts until the
// prompt is there. Without tmux there are only times.
func shellPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	shell, err := exec.LookPath("bash")
	if err != nil {
		return nil, err
	}
	own, err := filepath.Abs(s.programs.daemon[0])
	if err != nil {
		return nil, err
	}
	for _, name := range []string{".bashrc", ".bash_profile"} {
		if err := os.WriteFile(filepath.Join(r.home, name), []byte("PS1='"+shellPrompt+"$ '\n"), 0o600); err != nil {
			return nil, err
		}
	}
	for _, set := range []string{"HOME=" + r.home, "SHELL=" + shell, "TERM=xterm-256color"} {
		name, _, _ := strings.Cut(set, "=")
		r.env = append(slices.DeleteFunc(r.env, func(e string) bool { return strings.HasPrefix(e, name+"=") }), set)
	}
	ways := []struct {
		argv  []string
		end   string // typed at the prompt; must end with status 0
		times []float64
	}{{argv: []string{shell, "-i"}, end: "exit"}, {argv: []string{own, "shell", "--window"}, end: `[ -n "$` + proc.TagVar + `" ]; exit`}}
	if other, err := exec.LookPath("tmux"); err == nil {
		tmux := []string{other, "-S", filepath.Join(r.home, "tmux"), "-f", os.DevNull}
		if err := r.runProgram(ctx, append(tmux, "new-session", "-d", "sleep", "1000")...); err != nil {
			return nil, err
		}
		defer func() { _ = r.runProgram(context.WithoutCancel(ctx), append(tmux, "kill-server")...) }()
		ways = append(ways, ways[0])
		ways[2].argv = append(tmux, "new-session")
	}
	for range 4 * s.starts {
		for i := range ways {
			took, err := r.prompted(ways[i].argv, ways[i].end)
			if err != nil {
				return nil, err
			}
			ways[i].times = append(ways[i].times, millis(took))
		}
	}
	bare, ours := median(ways[0].times), median(ways[1].times)
	rows := []row{
		{Part: "shell", Name: "bash -i at a bare pty", Value: bare, Unit: "ms"},
		row{Part: "shell", Name: "tether shell --window", Value: ours, Unit: "ms"}.slower(floorShell, bare, referenceShell),
	}
	if len(ways) > 2 {
		theirs := median(ways[2].times)
		rows = append(rows, row{Part: "shell", Name: "tether shell --window, times tmux new-session", Value: ours / theirs, Note: digits(theirs) + " ms"}.most(floorShellTmux))
	}
	return rows, nil
}

// prompted starts argv at a pty, returns how long it took until its shell's prompt was
// there, and types end, which must end the shell with status 0.
func (r *rig) prompted(argv []string, end string) (time.Duration, error) {
	began := time.Now()
	p, err := pty.Start(pty.Command{Path: argv[0], Args: argv, Dir: r.home, Env: r.env})
	if err != nil {
		return 0, err
	}
	defer p.Close()
	limit := time.AfterFunc(shellTimeout, func() { _ = p.Kill(context.Background(), 0) }) // its output ends then
	defer limit.Stop()
	var out bytes.Buffer
	buf := make([]byte, 4<<10)
	for !bytes.Contains(out.Bytes(), []byte(shellPrompt)) {
		n, err := p.Read(buf)
		if out.Write(buf[:n]); err != nil {
			return 0, fmt.Errorf("%q printed no prompt: %w: %q", argv, err, out.Bytes())
		}
	}
	took := time.Since(began)
	if _, err := p.Write([]byte(end + "\r")); err != nil {
		return 0, err
	}
	for err == nil {
		_, err = p.Read(buf)
	}
	if exit := p.Wait(); exit.Code != 0 {
		return 0, fmt.Errorf("%q: after %s, exit status %d", argv, end, exit.Code)
	}
	return took, nil
}
