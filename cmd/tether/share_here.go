package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/ahp"
	"tether/cmd/tether/internal/display"
	"tether/cmd/tether/internal/tunnel"
	"tether/mcp"
	"tether/platform/dirs"
)

// hereFlags are the flags of tether share --here.
type hereFlags struct {
	on, agent bool
	via       string
	publicURL string
}

func (f *hereFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "here", false, "share from this machine, without a paired host, for as long as this command runs")
	c.Flags().StringVar(&f.via, "via", "", "with --here: make the link reachable by this `WAY`: tailscale, tailscale:funnel, ssh:HOST[:PORT], cloudflared or none; default: the first of tailscale and cloudflared that works")
	c.Flags().StringVar(&f.publicURL, "public-url", "", "with --via ssh:HOST: the https `URL` that leads to the port at HOST")
	c.Flags().BoolVar(&f.agent, "agent", false, "with --here: also print a token with which an agent reads the terminal by MCP")
	_ = c.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{tunnel.Tailscale, tunnel.Funnel, tunnel.SSHPrefix, tunnel.Cloudflared, tunnel.None}, cobra.ShellCompDirectiveNoFileComp)) // cannot fail: the flag exists
}

// ways returns the ways to try, in this order.
func (f *hereFlags) ways(c *cobra.Command, host string) ([]tunnel.Way, error) {
	switch {
	case !f.on && (f.via != "" || f.publicURL != "" || f.agent):
		return nil, usage(c, "--via, --public-url and --agent need --here")
	case !f.on:
		return nil, nil
	case host != "":
		return nil, usage(c, "--here and --host cannot be combined")
	case f.via == "" && f.publicURL == "":
		return tunnel.Found(exec.LookPath), nil
	}
	w, err := tunnel.Parse(f.via, f.publicURL)
	if err != nil {
		return nil, usage(c, "--via: %v", err)
	}
	return []tunnel.Way{w}, nil
}

// private is a host that this command has started for one terminal, with what is in front
// of it.
type private struct {
	app   *app
	host  string // program
	dir   string // its state
	token string // of an agent; "" without one
	url   string // ws://127.0.0.1:PORT
	made  localapi.NewShare
	door  *tunnel.Door
}

// openWithin bounds the opening of a way that the person did not choose.
const openWithin = 20 * time.Second

// errHostEnded says that the private host has ended by itself.
var errHostEnded = errors.New("the private host has ended")

// shareHere shares a terminal from this machine until ctx, the link's time or its link
// ends.
func (a *app) shareHere(ctx context.Context, ref string, r localapi.ShareRequest, ways []tunnel.Way, agent bool) (err error) {
	p := &private{app: a}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if p.host, err = hostProgram(self); err != nil {
		return &hinted{errors.New("--here needs tether-host, which is neither next to tether nor in PATH"), "packages and make build contain both"}
	}
	client, _, err := a.client()
	if err != nil {
		return err
	}
	defer client.Close()
	if p.dir, err = os.MkdirTemp("", "tether-share."); err != nil {
		return err
	}
	defer removeSoon(p.dir)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running, err := p.start(ctx, agent)
	if err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer running.Close()
	work.Go(func() {
		_, _ = io.Copy(io.Discard, running) // until the host ends
		cancel(errHostEnded)
	})
	token, err := os.ReadFile(p.tokenFile())
	if err != nil {
		return err
	}
	r.Here = &localapi.PrivateHost{URL: p.url, Token: strings.TrimSpace(string(token)), Agents: agent}
	made, wait, err := client.ShareHere(ctx, ref, r)
	if err != nil {
		return cause(ctx, err)
	}
	p.made = made
	port, stop, err := p.open(agent)
	if err != nil {
		return err
	}
	defer stop()
	work.Go(func() { cancel(p.reach(ctx, ways, port)) })
	a.notice("%s sees all retained and new output of %s until %s; Ctrl-C ends it, and so does: tether unshare %s",
		admitted(made), display.Printable(made.Name, 80), made.Until.Local().Format("2006-01-02 15:04"), made.ID)
	switch err = wait(); {
	case err == nil:
		a.notice("the link has ended")
	case errors.Is(err, localclient.ErrDropped) && ctx.Err() == nil:
		err = &hinted{fmt.Errorf("the link has ended with the daemon: %w", err), "share it again"}
	}
	err = cause(ctx, err)
	cancel(nil)
	return err
}

// cause returns why ctx has ended, or err if it has not.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// admitted says who a link lets in.
func admitted(s localapi.NewShare) string {
	if s.Once {
		return "the first browser that opens this link"
	}
	return "whoever has this link"
}

func (p *private) tokenFile() string { return filepath.Join(p.dir, "token") }

// env is the host's environment: it uses only its own directory.
func (p *private) env() (env []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TETHER_") {
			env = append(env, e)
		}
	}
	return append(env, dirs.HomeVar+"="+p.dir)
}

// start starts the host and waits until it is ready.
func (p *private) start(ctx context.Context, agent bool) (running io.ReadCloser, err error) {
	if agent {
		c := exec.CommandContext(ctx, p.host, "token", "create", "agent", "--role", "agent")
		c.Env = p.env()
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("tether-host token create: %w", err)
		}
		p.token = strings.TrimSpace(string(out))
	}
	running, err = startKept(ctx, p.env(), p.dir, p.host, []string{"--listen", "127.0.0.1:0", "--token-file", p.tokenFile(), "--shells=false", "--park", "0s", "--drain", "1s",
		"--max-connections", "256", "--log-level", "error"})
	if err != nil {
		return nil, fmt.Errorf("start the private host: %w", err)
	}
	late := time.AfterFunc(demoWithin, func() { running.Close() })
	defer late.Stop()
	said := bufio.NewReader(io.LimitReader(running, 64<<10))
	for {
		line, err := said.ReadString('\n')
		if rest, ok := strings.CutPrefix(line, "READY "); ok && err == nil {
			p.url = strings.TrimSpace(rest)
			return running, nil
		}
		if err != nil {
			running.Close()
			return nil, cause(ctx, fmt.Errorf("%w: %s", errHostEnded, strings.TrimSpace(line)))
		}
	}
}

// open opens the door in front of the host, on a free port of loopback.
func (p *private) open(agent bool) (port int, stop func(), err error) {
	host, err := url.Parse(p.url)
	if err != nil {
		return 0, nil, err
	}
	paths := []string{ahp.SharePath, "/assets/"}
	if agent {
		paths = append(paths, mcp.Path)
	}
	p.door = tunnel.NewDoor(host.Host, paths...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	server := p.door.Server()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // until stop
	}()
	return l.Addr().(*net.TCPAddr).Port, func() { server.Close(); <-served }, nil
}

// reach keeps the first way open that opens. It returns if none does, or ctx ends.
func (p *private) reach(ctx context.Context, ways []tunnel.Way, port int) error {
	start := func(ctx context.Context, program string, args []string) (io.ReadCloser, error) {
		return startKept(ctx, nil, "", program, args)
	}
	for _, w := range ways {
		on := p.events(w)
		if w.Program == "" {
			on.Up(fmt.Sprintf("http://127.0.0.1:%d", port))
			<-ctx.Done()
			return ctx.Err()
		}
		if len(ways) == 1 {
			return w.Run(ctx, port, start, on)
		}
		err := w.RunWithin(ctx, openWithin, port, start, on)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.app.notice("no way by %s: %v", w.Name, err)
	}
	return errors.New("no way is left") // not reached: the last one needs no program
}

// events shows a way's events to the person.
func (p *private) events(w tunnel.Way) tunnel.Events {
	a, at := p.app, ""
	return tunnel.Events{
		Up: func(url string) {
			if url == at {
				a.notice("%s: open again", w.Name)
				return
			}
			p.door.FoundAt(url)
			if at == "" {
				a.notice("who can read what is shown (%s): %s", w.Name, w.Readers)
				if w.Note != "" {
					a.notice("%s", w.Note)
				}
			} else {
				a.notice("%s: open again at another address; the former link does not work any more", w.Name)
			}
			at = url
			p.show(url)
		},
		Down: func(why string, pause time.Duration) {
			a.notice("%s: closed (%s); trying again in %v", w.Name, display.Printable(why, 200), pause)
		},
		Says: func(line string) { a.notice("%s: %s", w.Program, display.Printable(line, 300)) },
	}
}

// show prints the link at an address.
func (p *private) show(at string) {
	link, err := ahp.ParseShareLink(p.made.Link)
	if err != nil {
		p.app.notice("%v", err) // not reached: the daemon has made it
		return
	}
	link.URL = at + ahp.SharePath + "#"
	shown := p.made
	shown.Link, shown.Loopback = link.Text(), strings.HasPrefix(at, "http:")
	fmt.Fprintln(p.app.stdout, shown.Link)
	p.app.showCode(shown)
	if p.token != "" {
		p.app.notice("an agent reads the terminal by MCP at this address with this token, as Authorization: Bearer")
		fmt.Fprintf(p.app.stdout, "%s%s\n%s\n", at, mcp.Path, p.token)
	}
}
