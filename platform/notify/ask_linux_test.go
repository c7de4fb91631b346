package notify_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/notify"
)

// privateBus starts a session bus for the test and connects to it twice.
func privateBus(t *testing.T) (desktop, other *dbus.Conn) {
	t.Helper()
	path, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("no dbus-daemon: scripts/test-tools.sh installs it")
	}
	daemon := exec.Command(path, "--session", "--nofork", "--print-address", "--address=unix:dir="+testkit.Home(t))
	out := must.Get(daemon.StdoutPipe())(t)
	must.Do(t, daemon.Start())
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	address := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", strings.TrimSpace(address))
	connect := func() *dbus.Conn {
		conn := must.Get(dbus.Connect(strings.TrimSpace(address)))(t)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	return connect(), connect()
}

// fakeDesktop shows notifications: it reports each on shown, and each withdrawn one on
// closed.
type fakeDesktop struct {
	name   string
	can    []string
	shown  chan []string // title, body, actions
	closed chan uint32
}

func (d *fakeDesktop) GetServerInformation() (name, vendor, version, spec string, err *dbus.Error) {
	return d.name, "v", "1", "1.2", nil
}
func (d *fakeDesktop) GetCapabilities() ([]string, *dbus.Error) { return d.can, nil }
func (d *fakeDesktop) Notify(app string, replaces uint32, icon, title, body string, actions []string, hints map[string]dbus.Variant, expire int32) (uint32, *dbus.Error) {
	d.shown <- append([]string{title, body}, actions...)
	return 7, nil
}
func (d *fakeDesktop) CloseNotification(id uint32) *dbus.Error { d.closed <- id; return nil }

const (
	servedAs = "org.freedesktop.Notifications"
	servedAt = dbus.ObjectPath("/org/freedesktop/Notifications")
)

func (d *fakeDesktop) serve(t *testing.T, conn *dbus.Conn) {
	t.Helper()
	d.shown, d.closed = make(chan []string, 8), make(chan uint32, 8)
	must.Do(t, conn.Export(d, servedAt, servedAs))
	if got, err := conn.RequestName(servedAs, dbus.NameFlagDoNotQueue); err != nil || got != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(got, err)
	}
}

var buttons = []notify.Button{{Key: "approve", Label: "Approve"}, {Key: "deny", Label: "Deny"}}

func trusted(int) error { return nil }

// The button that the person presses is the answer; signals of other programs are
// ignored.
func TestAsk(t *testing.T) {
	desktop, other := privateBus(t)
	d := &fakeDesktop{name: "gnome-shell", can: []string{"actions", "body"}}
	d.serve(t, desktop)
	type result struct {
		key string
		err error
	}
	for _, c := range []struct {
		name string
		say  func(emit func(conn *dbus.Conn, name string, values ...any))
		want result
	}{
		{"pressed", func(emit func(*dbus.Conn, string, ...any)) { emit(desktop, "ActionInvoked", uint32(7), "approve") }, result{"approve", nil}},
		{"the other one", func(emit func(*dbus.Conn, string, ...any)) { emit(desktop, "ActionInvoked", uint32(7), "deny") }, result{"deny", nil}},
		{"closed", func(emit func(*dbus.Conn, string, ...any)) { emit(desktop, "NotificationClosed", uint32(7), uint32(2)) }, result{"", notify.ErrClosed}},
		{"forged", func(emit func(*dbus.Conn, string, ...any)) {
			emit(other, "ActionInvoked", uint32(7), "approve")
			emit(desktop, "ActionInvoked", uint32(8), "approve")
			emit(desktop, "ActionInvoked", uint32(7), "default")
			emit(desktop, "ActionInvoked", "7", "approve")
			emit(desktop, "ActionInvoked")
			emit(other, "NotificationClosed", uint32(7), uint32(2))
			emit(desktop, "ActionInvoked", uint32(7), "deny")
		}, result{"deny", nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			came := make(chan result, 1)
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			go func() {
				key, err := notify.Ask(ctx, "title", "a <b>", buttons, func(pid int) error {
					if pid != os.Getpid() {
						return errors.New("another process")
					}
					return nil
				})
				came <- result{key, err}
			}()
			select {
			case shown := <-d.shown:
				if diff := cmp.Diff([]string{"title", "a &lt;b&gt;", "approve", "Approve", "deny", "Deny"}, shown); diff != "" {
					t.Error(diff)
				}
			case got := <-came:
				t.Fatalf("nothing is shown: %+v", got)
			}
			var names []string
			must.Do(t, desktop.BusObject().Call("org.freedesktop.DBus.ListNames", 0).Store(&names))
			c.say(func(conn *dbus.Conn, name string, values ...any) {
				for _, to := range names { // a signal to one connection alone needs no match
					must.Do(t, emitTo(conn, to, name, values...))
				}
				var id string // the bus has delivered the signals before this answer
				must.Do(t, conn.BusObject().Call("org.freedesktop.DBus.GetId", 0).Store(&id))
			})
			if got := <-came; got.key != c.want.key || !errors.Is(got.err, c.want.err) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	came := make(chan error, 1)
	go func() { _, err := notify.Ask(ctx, "title", "body", buttons, trusted); came <- err }()
	<-d.shown
	cancel()
	if id, err := <-d.closed, <-came; id != 7 || !errors.Is(err, context.Canceled) {
		t.Errorf("taken back: %d, %v", id, err)
	}
}

func emitTo(conn *dbus.Conn, to, name string, values ...any) error {
	m := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: dbus.MakeVariant(to), dbus.FieldPath: dbus.MakeVariant(servedAt),
		dbus.FieldInterface: dbus.MakeVariant(servedAs), dbus.FieldMember: dbus.MakeVariant(name),
	}, Body: values}
	if len(values) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(values...))
	}
	return conn.Send(m, nil).Err
}

// Nothing is asked where a program could answer for the person.
func TestAskNobody(t *testing.T) {
	for _, c := range []struct {
		name  string
		d     *fakeDesktop
		trust error
	}{
		{"no desktop", nil, nil},
		{"without buttons", &fakeDesktop{name: "plain", can: []string{"body"}}, nil},
		{"where programs press buttons", &fakeDesktop{name: "dunst", can: []string{"actions"}}, nil},
		{"an agent's", &fakeDesktop{name: "gnome-shell", can: []string{"actions"}}, errors.New("an agent has started it")},
	} {
		t.Run(c.name, func(t *testing.T) {
			desktop, _ := privateBus(t)
			if c.d != nil {
				c.d.serve(t, desktop)
			}
			_, err := notify.Ask(t.Context(), "title", "body", buttons, func(int) error { return c.trust })
			if want := c.trust; want == nil && !errors.Is(err, notify.ErrUnsupported) || want != nil && !errors.Is(err, want) {
				t.Errorf("%v", err)
			}
			if c.d != nil && len(c.d.shown) > 0 {
				t.Error("it was shown")
			}
		})
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "autolaunch:")
	if _, err := notify.Ask(t.Context(), "title", "body", buttons, trusted); !errors.Is(err, notify.ErrUnsupported) {
		t.Errorf("a bus that would be started: %v", err)
	}
}
