//go:build windows

package installer

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/kardianos/service"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestRunKey(t *testing.T) {
	const name = "tether-test"
	var k runKey
	t.Cleanup(func() { _ = k.Delete(name) })
	for _, want := range []string{`"C:\Zoë B\tether.exe" service logon`, "x"} {
		must.Do(t, k.Set(name, want))
		if got, err := k.Value(name); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	check.OK(t, errors.Join(k.Delete(name), k.Delete(name)))
	if got, err := k.Value(name); err != nil || got != "" {
		t.Errorf("after removal: %q, %v", got, err)
	}
}

// The daemon of a service ends when Windows stops the service, and Windows gets its exit
// code when it ends by itself.
func TestServiceHandler(t *testing.T) {
	for name, tt := range map[string]struct {
		ask  svc.Cmd
		fail error
		code uint32
	}{"stop": {svc.Stop, nil, 0}, "shutdown": {svc.Shutdown, nil, 0}, "crash": {0, errors.New("it broke"), 1}} {
		t.Run(name, func(t *testing.T) {
			h := &handler{run: func(ctx context.Context) error {
				if tt.fail == nil {
					<-ctx.Done()
				}
				return tt.fail
			}}
			requests, changes := make(chan svc.ChangeRequest, 2), make(chan svc.Status, 8)
			requests <- svc.ChangeRequest{Cmd: svc.Interrogate}
			if tt.ask != 0 {
				requests <- svc.ChangeRequest{Cmd: tt.ask}
			}
			if _, code := h.Execute(nil, requests, changes); code != tt.code || !errors.Is(h.err, tt.fail) {
				t.Errorf("code %d, %v", code, h.err)
			}
			if first := <-changes; first.State != svc.Running {
				t.Errorf("it began as %v", first.State)
			}
		})
	}
}

func TestMachineServiceNotInstalled(t *testing.T) {
	m := New(true)
	if st, err := m.Status(t.Context()); err != nil || st.Installed {
		t.Skipf("a service is installed here: %+v, %v", st, err)
	}
	check.OK(t, errors.Join(m.Uninstall(t.Context())))
	if err := m.Start(t.Context()); err == nil {
		t.Error("what is not installed was started")
	}
}

// control answers like the service manager of Windows about a service.
type control struct {
	service.Service
	running bool
	done    []string
}

func (c *control) Status() (service.Status, error) { return service.StatusStopped, nil }

func (c *control) Start() error {
	c.done = append(c.done, "start")
	if c.running {
		return windows.ERROR_SERVICE_ALREADY_RUNNING
	}
	c.running = true
	return nil
}

func (c *control) Stop() error {
	c.done = append(c.done, "stop")
	if !c.running {
		return windows.ERROR_SERVICE_NOT_ACTIVE
	}
	c.running = false
	return nil
}

// To start a running service and to stop a stopped one is no error. A restart starts a
// stopped one.
func TestServiceThatRunsOrNot(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*scm) error
		done []string
		runs bool
	}{
		"start":   {func(m *scm) error { return m.Start(t.Context()) }, []string{"start"}, true},
		"stop":    {func(m *scm) error { return m.Stop(t.Context()) }, []string{"stop"}, false},
		"restart": {func(m *scm) error { return m.Restart(t.Context()) }, []string{"stop", "start"}, true},
	} {
		for _, running := range []bool{false, true} {
			c := &control{running: running}
			m := &scm{newControl: func(Service) (service.Service, error) { return c, nil }}
			if err := tt.do(m); err != nil || c.running != tt.runs || !slices.Equal(c.done, tt.done) {
				t.Errorf("%s, running before %t: %v, running %t, calls %v", name, running, err, c.running, c.done)
			}
		}
	}
}
