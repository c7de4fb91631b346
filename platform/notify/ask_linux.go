package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	service = "org.freedesktop.Notifications" // also the interface
	object  = dbus.ObjectPath("/org/freedesktop/Notifications")
	bus     = "org.freedesktop.DBus"
	// showWithin bounds how long the desktop takes to show a notification.
	showWithin = 5 * time.Second
	// maxSignals bounds the signals that wait to be handled. Signals above it are
	// dropped.
	maxSignals = 64
)

// pressable are notification programs that let every program of the user press a button:
// by dunstctl action, makoctl invoke, swaync-client and fnottctl.
var pressable = []string{"dunst", "mako", "swaync", "swaynotificationcenter", "fnott"}

// session is a connection to the program that shows notifications.
type session struct {
	conn  *dbus.Conn
	owner string // the program's unique name on the bus, which no other program gets later
	shows dbus.BusObject
}

func ask(ctx context.Context, title, body string, buttons []Button, trust func(int) error) (string, error) {
	address := busAddress()
	if address == "" || strings.HasPrefix(address, "autolaunch:") { // connecting to autolaunch: would start a bus
		return "", ErrUnsupported
	}
	open, end := context.WithCancel(context.Background())
	defer end()
	late := time.AfterFunc(showWithin, end)
	defer late.Stop()
	conn, err := dbus.Connect(address, dbus.WithContext(open))
	if err != nil {
		return "", fmt.Errorf("connect to the session's bus: %w", err)
	}
	defer conn.Close()
	s, err := find(open, conn, trust)
	if err != nil {
		return "", err
	}
	answers := make(chan *dbus.Signal, maxSignals)
	conn.Signal(answers)
	if err := conn.AddMatchSignalContext(open, dbus.WithMatchSender(s.owner), dbus.WithMatchInterface(service)); err != nil {
		return "", err
	}
	actions := make([]string, 0, 2*len(buttons))
	for _, b := range buttons {
		actions = append(actions, b.Key, b.Label)
	}
	var id uint32
	const forever = int32(0)
	if err := s.shows.CallWithContext(open, service+".Notify", 0, "tether", uint32(0), "dialog-question", title, markup(body), actions, map[string]dbus.Variant{}, forever).Store(&id); err != nil {
		return "", fmt.Errorf("show a notification: %w", err)
	}
	if !late.Stop() {
		return "", context.DeadlineExceeded
	}
	for {
		select {
		case <-ctx.Done():
			s.shows.CallWithContext(open, service+".CloseNotification", dbus.FlagNoReplyExpected, id)
			return "", ctx.Err()
		case signal, ok := <-answers:
			if !ok {
				return "", errors.New("the session's bus has ended")
			}
			if key, done, err := s.answer(signal, id, buttons); done {
				return key, err
			}
		}
	}
}

// find returns a session with the program that shows notifications. It starts that
// program if necessary. It returns ErrUnsupported if the program has no buttons or lets
// other programs press them, and an error if trust does.
func find(ctx context.Context, conn *dbus.Conn, trust func(int) error) (*session, error) {
	s := &session{conn: conn}
	owner := func() error {
		return conn.BusObject().CallWithContext(ctx, bus+".GetNameOwner", 0, service).Store(&s.owner)
	}
	if err := owner(); err != nil {
		var started uint32
		err = conn.BusObject().CallWithContext(ctx, bus+".StartServiceByName", 0, service, uint32(0)).Store(&started)
		if err != nil || owner() != nil {
			return nil, ErrUnsupported // there is no service, and none can be started
		}
	}
	var pid uint32
	if err := conn.BusObject().CallWithContext(ctx, bus+".GetConnectionUnixProcessID", 0, s.owner).Store(&pid); err != nil {
		return nil, fmt.Errorf("which process shows notifications: %w", err)
	}
	if err := trust(int(pid)); err != nil {
		return nil, fmt.Errorf("process %d shows notifications: %w", pid, err)
	}
	s.shows = conn.Object(s.owner, object)
	var name, vendor, version, spec string
	var can []string
	err := s.shows.CallWithContext(ctx, service+".GetServerInformation", 0).Store(&name, &vendor, &version, &spec)
	if err == nil {
		err = s.shows.CallWithContext(ctx, service+".GetCapabilities", 0).Store(&can)
	}
	if err != nil {
		return nil, fmt.Errorf("ask what the desktop can show: %w", err)
	}
	if !slices.Contains(can, "actions") || slices.Contains(pressable, strings.ToLower(strings.ReplaceAll(name, " ", ""))) {
		return nil, ErrUnsupported
	}
	return s, nil
}

// answer returns the meaning of a signal for the notification id. done is false for
// signals that do not end it. Other programs can send signals directly to this
// connection, whatever it matches: only the sender's name on the bus cannot be forged.
func (s *session) answer(signal *dbus.Signal, id uint32, buttons []Button) (key string, done bool, err error) {
	if signal.Sender != s.owner || signal.Path != object || len(signal.Body) != 2 || signal.Body[0] != any(id) {
		return "", false, nil
	}
	switch signal.Name {
	case service + ".ActionInvoked":
		key, _ := signal.Body[1].(string)
		return key, slices.ContainsFunc(buttons, func(b Button) bool { return b.Key == key }), nil
	case service + ".NotificationClosed":
		return "", true, ErrClosed
	}
	return "", false, nil
}
