package uplink_test

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// capture is a connection whose every outgoing message is kept.
type capture struct {
	jsonrpc.Channel

	mu    sync.Mutex
	sent  []string
	at    []time.Time
	stuck chan struct{} // while the network takes nothing: closed when it goes on
}

func (c *capture) Send(ctx context.Context, msg []byte) error {
	c.mu.Lock()
	c.sent, c.at = append(c.sent, string(msg)), append(c.at, time.Now())
	stuck := c.stuck
	c.mu.Unlock()
	if stuck != nil {
		<-stuck
	}
	return c.Channel.Send(ctx, msg)
}

// stall has the network take nothing, until goOn.
func (c *capture) stall() {
	locked(&c.mu, func() { c.stuck = make(chan struct{}) })
}

func (c *capture) goOn() {
	c.mu.Lock()
	close(c.stuck)
	c.stuck = nil
	c.mu.Unlock()
}

// since returns the messages sent from a time on.
func (c *capture) since(at time.Time) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, _ := slices.BinarySearchFunc(c.at, at, time.Time.Compare)
	return c.sent[i:]
}

// captured is a world whose link's connections go through c.
func captured(t *testing.T, c *capture, to term.Options, more ...func(*uplink.Options)) *world {
	return newWorldOf(t, host.Options{}, to, func(o *uplink.Options) {
		for _, change := range more {
			change(o)
		}
		o.Connect = func(ctx context.Context, _ client.Endpoint, co client.Options) (*client.Conn, error) {
			near, far := testkit.Channels()
			h := host.New(host.Options{})
			t.Cleanup(func() { h.Close() })
			go h.ServeChannel(context.Background(), far)
			c.Channel = near
			return client.ConnectChannel(ctx, c, co)
		}
	})
}

var (
	uriPattern = regexp.MustCompile(`ahp-terminal:/[0-9a-f-]+`)
	pings      = `"method":"ping"`
)

// A terminal that is not lent leaves no trace upstream, be it private, lent to nobody or
// to another host: the machine sends the same as one without it.
func TestAPrivateTerminalLeavesNoTrace(t *testing.T) {
	without := captureBeside(t, nil)
	if len(without) < 6 {
		t.Fatalf("captured are %d messages", len(without))
	}
	for name, other := range map[string]term.Spec{
		"private": {Private: true}, "alone": {}, "elsewhere": {LendTo: []string{"another host"}},
		"big": {Size: term.Size{Cols: 500, Rows: 200}, OnSlow: term.Hold},
	} {
		t.Run(name, func(t *testing.T) {
			with := captureBeside(t, &other)
			if !slices.Equal(with, without) {
				t.Errorf("with another terminal this is sent:\n%s\nwithout:\n%s", strings.Join(with, "\n"), strings.Join(without, "\n"))
			}
		})
	}
}

// captureBeside returns all that goes up while a terminal is lent and, if there is one,
// another that is not does all that one can.
func captureBeside(t *testing.T, other *term.Spec) (all []string) {
	synctest.Test(t, func(t *testing.T) {
		c := &capture{}
		w := captured(t, c, term.Options{})
		w.online()
		h, child := w.spawn(term.Spec{Nonce: "n"})
		step := func(do func()) {
			if other != nil {
				do()
			}
			synctest.Wait()
			time.Sleep(1100 * time.Millisecond) // no look at a terminal falls on an output
		}
		var mine term.Handle
		step(func() {
			spec := *other
			spec.Command, spec.Cwd, spec.Name, spec.Nonce = []string{"fake"}, testkit.Abs("/src"), "mine", "n"
			var err error
			if mine, err = w.pool.As(term.User).Spawn(spec); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			w.child.Print("secret \x1b]0;title\a\x1b]633;E;make;n\a\x1b]633;C;n\a" + strings.Repeat("flood\r\n", 30<<10)) // more than the log keeps
		})
		child.Print("public one\r\n")
		step(func() {
			_ = mine.Resize(term.Size{Cols: 100, Rows: 40})
			if other.Private && mine.Lend("lab") == nil {
				t.Error("a private terminal was lent")
			}
		})
		child.Print("public two\r\n")
		step(func() { _ = mine.Kill(context.Background()) })
		check.OK(t, h.Kill(context.Background()))
		synctest.Wait()
		time.Sleep(time.Minute)
		for _, m := range c.since(time.Time{}) {
			all = append(all, uriPattern.ReplaceAllString(m, "URI"))
		}
	})
	return all
}

// Within 100 ms of unlend nothing of the terminal goes up but its disposal, however much
// it prints. Lent again it is another one there.
func TestUnlendSilencesAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &capture{}
		w := captured(t, c, term.Options{})
		w.online()
		h, child := w.spawn(term.Spec{})
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				child.Print(strings.Repeat("flood ", 200))
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		time.Sleep(time.Second)
		first := w.link.Status().Terminals[0].URI
		must.Do(t, h.Unlend("lab"))
		at := time.Now()
		time.Sleep(5 * time.Second)
		for _, m := range c.since(at.Add(100 * time.Millisecond)) {
			if !strings.Contains(m, pings) {
				t.Errorf("sent: %.200s", m)
			}
		}
		// Output read before may still be in transit at that moment.
		for _, m := range c.since(at.Add(time.Nanosecond)) {
			if strings.Contains(m, "terminal/output") {
				t.Errorf("sent after unlend: %.200s", m)
			}
		}
		must.Do(t, h.Lend("lab"))
		time.Sleep(time.Second)
		if again := w.link.Status().Terminals; len(again) != 1 || again[0].URI == first || again[0].URI == "" {
			t.Errorf("lent again it is %+v, before %s", again, first)
		}
		close(stop)
		<-stopped
	})
}

// Output that waits in the daemon because the network takes nothing is not sent after
// unlend either, except for the one message that is being written. Other terminals lose
// no output by that.
func TestUnlendDropsWaitingOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &capture{}
		w := captured(t, c, term.Options{})
		w.online()
		one, first := w.spawn(term.Spec{})
		two, second := w.spawn(term.Spec{})
		_, other := w.spawn(term.Spec{})
		time.Sleep(time.Second)
		uri := w.link.Status().Terminals[0].URI // which the other one prints, to be taken for it
		c.stall()
		for range 20 {
			first.Print(strings.Repeat("of the first ", 100))
			time.Sleep(time.Millisecond)
			second.Print(strings.Repeat("of the second ", 100))
			other.Print("stays lent, \"channel\":\"" + uri + "\" ")
			time.Sleep(time.Millisecond)
		}
		for _, h := range []term.Handle{one, two} {
			must.Do(t, h.Unlend("lab"))
			time.Sleep(50 * time.Millisecond)
		}
		at := time.Now()
		time.Sleep(time.Second)
		c.goOn()
		time.Sleep(5 * time.Second)
		after := strings.Join(c.since(at), "\n")
		if n := strings.Count(after, "of the "); n > 0 {
			t.Errorf("%d pieces are sent of what is not lent any more", n)
		}
		if got := strings.Count(strings.Join(c.since(time.Time{}), "\n"), "stays lent"); got != 20 {
			t.Errorf("of the terminal that stays lent %d pieces are sent, want 20", got)
		}
		if left := w.link.Status().Terminals; len(left) != 1 {
			t.Errorf("lent are %+v", left)
		}
	})
}

// The person sees how many watch, as long as there is a connection.
func TestObserversInStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.online()
		w.spawn(term.Spec{})
		time.Sleep(time.Second)
		want := func(n int) {
			t.Helper()
			synctest.Wait()
			if got := w.link.Status().Terminals[0].Observers; got == nil || *got != n {
				t.Errorf("%v observers, want %d", got, n)
			}
		}
		want(0)
		ch := must.Get(w.dial())(t)
		viewer := must.Get(client.ConnectChannel(w.ctx, ch, client.Options{ClientID: "viewer"}))(t)
		must.Get(viewer.Subscribe(w.ctx, w.link.Status().Terminals[0].URI))(t)
		want(1)
		viewer.Close()
		want(0)
		w.cut(true)
		if got := w.link.Status().Terminals[0].Observers; got != nil {
			t.Errorf("without a connection %d watch", *got)
		}
	})
}

// Other texts about a terminal are redacted like its output.
func TestOtherTextsAreRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const value = "hunter2-value"
		rules := must.Get(redact.Compile(redact.Options{Tokens: true}))(t)
		c := &capture{}
		w := captured(t, c, term.Options{Outward: rules, Secrets: func([]string) []string { return []string{value} }})
		w.online()
		token := "ghp_" + strings.Repeat("a1B2", 9)
		_, child := w.spawn(term.Spec{Nonce: "n", Env: []string{"T=" + value}})
		child.Print("\x1b]0;deploy " + value + " \u202eevil\a\x1b]633;P;Cwd=/tmp/" + token + ";n\a\x1b]633;E;curl -H " + token + " " + value + ";n\a\x1b]633;C;n\a" + value + "\r\n\x1b]633;D;0;n\a")
		time.Sleep(time.Second)
		all := strings.Join(c.since(time.Time{}), "\n")
		for _, never := range []string{value, token, "\u202eevil\"}"} {
			if strings.Contains(all, never) {
				t.Errorf("%q is sent:\n%s", never, all)
			}
		}
		for _, needed := range []string{ahp.ActionTerminalTitleChanged, "deploy *************", "curl -H ghp_****", "/tmp/ghp_%2A"} {
			if !strings.Contains(all, needed) {
				t.Errorf("%q is not sent:\n%s", needed, all)
			}
		}
	})
}

// The name of a runner's terminal has the directory's name at hosts that are told the
// directory, and nowhere else.
func TestNamesTellNoMaskedDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := must.Get(redact.Compile(redact.Options{Patterns: []string{`Acme Corp \d+`}}))(t)
		c := &capture{}
		w := captured(t, c, term.Options{Outward: rules})
		w.online()
		for _, dir := range []string{"/src/Acme Corp 4711", "/src/app"} {
			s := term.Spec{Cwd: testkit.Abs(dir), Env: []string{"T=x"}}
			s.Suggest(term.NameParts{Where: strings.ReplaceAll(path.Base(dir), " ", "-"), What: "dev"})
			w.spawn(s)
		}
		time.Sleep(time.Second)
		all := strings.Join(c.since(time.Time{}), "\n")
		if strings.Contains(all, "4711") || !strings.Contains(all, `"name":"dev"`) || !strings.Contains(all, `"name":"app-dev"`) {
			t.Errorf("sent:\n%s", all)
		}
	})
}

// A host that disposes of a terminal and takes nothing more delays nothing: the disposal
// is obeyed, and waiting output of another terminal, which is withdrawn meanwhile, is not
// sent.
func TestADisposalBehindAWriteDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := &capture{}, &fakeHost{target: ahp.TargetClient}
		w := newWorld(t, host.Options{}, func(o *uplink.Options) {
			o.AssumeClientTerminals = true
			o.Connect = func(ctx context.Context, _ client.Endpoint, co client.Options) (*client.Conn, error) {
				near, far := testkit.Channels()
				go f.serve(context.Background(), far)
				c.Channel = near
				return client.ConnectChannel(ctx, c, co)
			}
		})
		w.online()
		_, first := w.spawn(term.Spec{})
		uri := f.uri(t)
		two, second := w.spawn(term.Spec{})
		c.stall()
		prints(first, "of the first")
		prints(second, "of the second")
		f.say(t, uri, ahp.TerminalExited{})
		must.Do(t, two.Unlend("lab"))
		time.Sleep(time.Second)
		if !first.Killed() {
			t.Error("the terminal that was disposed of runs on while the network takes nothing")
		}
		c.goOn()
		pass(5 * time.Second)
		if all := strings.Join(c.since(time.Time{}), "\n"); strings.Contains(all, "of the second") {
			t.Errorf("of what was withdrawn this is sent:\n%s", all)
		}
		if alive := f.living(); len(alive) != 1 || alive[0] != uri {
			t.Errorf("the host was not asked to dispose of the second alone: of %v it has %v", f.created, alive)
		}
	})
}
