package installer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kardianos/service"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"
)

// PasswordVar is the environment variable with the password of the account of a service
// of the machine. It is not an argument, because other users can see arguments.
const PasswordVar = "TETHER_SERVICE_PASSWORD"

// scm is the Manager of Windows services. The service runs as an account's user, in a
// session without a screen.
type scm struct {
	run        Runner
	newControl func(s Service) (service.Service, error)
}

// control returns the control of s. For an installed service s may be zero, because
// Windows finds the service by its name.
func (m *scm) control(s Service) (service.Service, error) { return m.newControl(s) }

// Install implements Manager.
func (m *scm) Install(ctx context.Context, s Service) (Change, error) {
	c, err := m.control(s)
	if err != nil {
		return Unchanged, err
	}
	change := Installed
	was, found := known()
	switch {
	case found && was.Program == "":
		return Unchanged, foreign("the Windows service " + Name)
	case found && was.Program == s.Program:
		return Unchanged, m.start(c)
	case found:
		change = Updated
		if err := m.Uninstall(ctx); err != nil {
			return Unchanged, err
		}
	}
	if err := c.Install(); err != nil {
		return Unchanged, &Problem{Text: "Windows refused the service", Err: err, Next: "set " + PasswordVar + " to the password of " + s.User}
	}
	if err := m.start(c); err != nil {
		return Unchanged, undo(err, c.Uninstall)
	}
	return change, nil
}

// known returns the service that the registry lists, which every user may read. Program
// is "" if tether did not install it.
func known() (s Service, found bool) {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, `System\CurrentControlSet\Services\`+Name, registry.QUERY_VALUE)
	if err != nil {
		return s, false
	}
	defer k.Close()
	line, _, err := k.GetStringValue("ImagePath")
	if err == nil && strings.Contains(line, serviceRun) {
		s = Service{System: true, Program: program(line)}
		s.User, _, _ = k.GetStringValue("ObjectName") // "" if it cannot be read
	}
	return s, true
}

// serviceRun is in the command line of tether's service and of no other service.
const serviceRun = " service run"

func (m *scm) start(c service.Service) error {
	err := c.Start()
	switch {
	case err == nil, errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING):
		return nil
	case errors.Is(err, windows.ERROR_SERVICE_LOGON_FAILED):
		return &Problem{Text: "Windows does not let the account log on as a service", Err: err,
			Next: "give the right password in " + PasswordVar + ", and the account the right to log on as a service (secpol.msc, Local Policies, User Rights Assignment)"}
	}
	return err
}

// Uninstall implements Manager.
func (m *scm) Uninstall(ctx context.Context) error {
	c, err := m.control(Service{})
	if err != nil {
		return err
	}
	st, err := c.Status()
	switch was, _ := known(); {
	case errors.Is(err, service.ErrNotInstalled):
		return nil
	case was.Program == "":
		return foreign("the Windows service " + Name)
	case st == service.StatusRunning:
		if err := c.Stop(); err != nil {
			return err
		}
	}
	return c.Uninstall()
}

// Start implements Manager.
func (m *scm) Start(context.Context) error { return m.act(m.start) }

// Stop implements Manager.
func (m *scm) Stop(context.Context) error { return m.act(stop) }

// stop returns when the service has stopped. A stopped service is no error.
func stop(c service.Service) error {
	if err := c.Stop(); !errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) {
		return err
	}
	return nil
}

// Restart implements Manager.
func (m *scm) Restart(context.Context) error {
	return m.act(func(c service.Service) error {
		if err := stop(c); err != nil {
			return err
		}
		return m.start(c)
	})
}

func (m *scm) act(do func(service.Service) error) error {
	c, err := m.control(Service{})
	if err != nil {
		return err
	}
	if _, err := c.Status(); errors.Is(err, service.ErrNotInstalled) {
		return errNotInstalled(true)
	}
	return do(c)
}

// Status implements Manager.
func (m *scm) Status(context.Context) (Status, error) {
	c, err := m.control(Service{})
	if err != nil {
		return Status{}, err
	}
	state, err := c.Status()
	if errors.Is(err, service.ErrNotInstalled) {
		return Status{State: "not installed"}, nil
	}
	s, _ := known()
	st := Status{Installed: true, Service: s, Path: "the services of this machine", Enabled: true, Running: state == service.StatusRunning, State: "stopped"}
	if st.Running {
		st.State = "running"
	}
	return st, err
}

// Printed implements Manager.
func (m *scm) Printed(int, bool) []string { return nil }

// RunAsService runs the daemon under the service manager of Windows, until that manager
// stops it or run returns. It does not check whether this process is a service: only the
// command line of the installed service calls it.
func RunAsService(run func(context.Context) error) error {
	h := &handler{run: run}
	if err := svc.Run(Name, h); err != nil {
		return fmt.Errorf("run as a service: %w", err)
	}
	return h.err
}

type handler struct {
	run func(context.Context) error
	err error
}

// Execute implements svc.Handler.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (bool, uint32) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1) // 1: run may return while this goroutine sends a status
	go func() { ended <- h.run(ctx) }()
	changes <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	for {
		select {
		case h.err = <-ended:
			if h.err != nil {
				return true, 1
			}
			return false, 0
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				changes <- r.CurrentStatus
			case svc.Stop, svc.Shutdown:
				changes <- svc.Status{State: svc.StopPending}
				stop()
			}
		}
	}
}
