package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
)

// Run shows the screen on a person's terminal until the person quits or ctx ends. If ctx
// ends, it returns ctx's error.
func Run(ctx context.Context, client *localclient.Client, in, out *os.File) error {
	colours := display.Colours(out)
	screen := model{backend: &daemon{client: client, colours: colours}, colours: colours}
	_, err := tea.NewProgram(screen, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out)).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// state is the displayed state at one moment.
type state struct {
	terminals []localapi.Terminal
	declared  []localapi.Declared
	hosts     []localapi.HostStatus
	questions []localapi.Approval
	degraded  int
	of        string   // the id of the terminal that preview shows
	preview   []string // the last lines of that terminal
	err       error    // why the state could not be read; the other fields are then zero
}

// daemon is the backend that uses the daemon. Its methods are called concurrently, from
// goroutines of bubbletea's commands.
type daemon struct {
	client  *localclient.Client
	colours bool // previews keep their colours
	ports   ports
}

// answerTimeout bounds the requests of one look. The daemon answers them at once.
const answerTimeout = 3 * time.Second

// actTimeout bounds an action of the person, such as killing a terminal.
const actTimeout = 10 * time.Second

// previewLines is the number of lines that a preview requests.
const previewLines = 100

// look returns the state to display, with a preview of the chosen terminal.
func (d *daemon) look(chosen string) (s state) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	list, err := d.list(ctx)
	if err != nil {
		return state{err: err}
	}
	s.terminals, s.declared = list.Terminals, list.Declared
	status, err := d.client.Status(ctx)
	if err != nil {
		return state{err: err}
	}
	s.hosts, s.degraded = status.Hosts, len(status.Degraded)
	if list.Waiting > 0 {
		if all, err := d.client.Approvals(ctx, nil); err == nil {
			for _, q := range all.Approvals {
				if q.State == localapi.ApprovalWaiting {
					s.questions = append(s.questions, q)
				}
			}
		}
	}
	for _, t := range list.Terminals {
		if t.ID == chosen {
			s.of, s.preview = chosen, d.preview(ctx, t)
		}
	}
	return s
}

// list returns the terminals, with their ports as they were at most portsEvery ago.
func (d *daemon) list(ctx context.Context) (localapi.TerminalList, error) {
	if d.ports.due() {
		if list, err := d.client.ListPorts(ctx); err == nil {
			d.ports.note(list.Terminals)
			return list, nil
		}
	}
	list, err := d.client.List(ctx)
	d.ports.fill(list.Terminals)
	return list, err
}

// preview returns the end of a terminal's text, with its colours if d.colours. It may
// have more lines than the terminal.
func (d *daemon) preview(ctx context.Context, t localapi.Terminal) []string {
	lines, err := d.lines(ctx, t)
	if lines == nil && err == nil {
		var is localapi.Screen
		is, err = d.client.Screen(ctx, t.ID, true)
		lines = is.Coloured
	}
	if err != nil {
		return []string{"(" + display.Printable(err.Error(), 0) + ")"}
	}
	if !d.colours {
		for i, l := range lines {
			lines[i] = ansi.Strip(l)
		}
	}
	return lines
}

// lines returns the last lines that a terminal has printed. It returns nil if the output
// needs a screen.
func (d *daemon) lines(ctx context.Context, t localapi.Terminal) ([]string, error) {
	body, err := d.client.Read(ctx, t.ID, localclient.ReadOptions{Lines: previewLines}, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, 256<<10))
	if err != nil {
		return nil, err
	}
	lines, _ := colouredLines(bytes.TrimRight(data, "\r\n "))
	return lines, nil
}

// act carries out the person's action on a terminal or a question.
func (d *daemon) act(what action, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), actTimeout)
	defer cancel()
	var err error
	switch what {
	case actLend:
		_, err = d.client.Lend(ctx, id, localapi.LendRequest{})
	case actUnlend:
		_, err = d.client.Unlend(ctx, id, "")
	case actPromote:
		_, err = d.client.Promote(ctx, id)
	case actKill:
		_, err = d.client.Kill(ctx, id)
	case actApprove, actDeny:
		_, err = d.client.Approve(ctx, id, what == actApprove, 0)
	}
	return err
}

// lendTo lets people watch the terminal at the default host. It stops those whose names
// begin with "-" from watching, at all hosts.
func (d *daemon) lendTo(id string, names []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), actTimeout)
	defer cancel()
	to, from := splitWords(names)
	var errs []error
	if len(from) > 0 {
		_, err := d.client.UnlendFrom(ctx, id, "", from)
		errs = append(errs, err)
	}
	if len(to) > 0 {
		_, err := d.client.Lend(ctx, id, localapi.LendRequest{To: to})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// lendPorts opens ports at the default host to those who may watch. It closes those that
// begin with "-", at all hosts.
func (d *daemon) lendPorts(id string, ports []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), actTimeout)
	defer cancel()
	open, shut := splitWords(ports)
	var errs []error
	if len(shut) > 0 {
		_, err := d.client.UnlendPorts(ctx, id, "", shut)
		errs = append(errs, err)
	}
	if len(open) > 0 {
		_, err := d.client.Lend(ctx, id, localapi.LendRequest{Ports: open})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// splitWords separates words that begin with "-", without that.
func splitWords(words []string) (add, remove []string) {
	for _, word := range words {
		if rest, ok := strings.CutPrefix(word, "-"); ok {
			remove = append(remove, rest)
		} else {
			add = append(add, word)
		}
	}
	return add, remove
}

// command returns a command that runs this program with the arguments, for commands that
// take the whole screen.
func (d *daemon) command(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, args...), nil
}
