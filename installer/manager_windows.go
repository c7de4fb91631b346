package installer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"

	"github.com/kardianos/service"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc/mgr"
)

// New returns the Manager for services of the user who calls, or of the machine.
func New(system bool) Manager {
	if system {
		return &scm{run: Execute, newControl: machineControl}
	}
	return &logon{run: Execute, key: runKey{}, where: `HKCU\` + RunKey + `\` + RunValue}
}

// machineControl returns kardianos/service's control of a service of the machine.
func machineControl(s Service) (service.Service, error) {
	c, err := service.New(idle{}, &service.Config{
		Name: Name, DisplayName: Name, Description: "lends terminals of this machine to agent hosts", Executable: s.Program, Arguments: append([]string{"service", "run"}, s.homeArgs()...), UserName: s.User,
		Option: service.KeyValue{service.OnFailure: service.OnFailureRestart, service.OnFailureDelayDuration: "1s", "Password": os.Getenv(PasswordVar)},
	})
	if err != nil {
		return nil, fmt.Errorf("services of this machine: %w", err)
	}
	return c, nil
}

// idle is the program that kardianos/service would run. It does nothing: here that
// package only installs and controls services.
type idle struct{}

// Start is never called.
func (idle) Start(service.Service) error { return nil }

// Stop is never called.
func (idle) Stop(service.Service) error { return nil }

// runKey is the real registry key.
type runKey struct{}

// Value implements values.
func (runKey) Value(name string) (string, error) {
	k, err := registry.OpenKey(registry.CURRENT_USER, RunKey, registry.QUERY_VALUE)
	if errors.Is(err, registry.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer k.Close()
	v, _, err := k.GetStringValue(name)
	if errors.Is(err, registry.ErrNotExist) {
		return "", nil
	}
	return v, err
}

// Set implements values.
func (runKey) Set(name, value string) error {
	k, _, err := registry.CreateKey(registry.CURRENT_USER, RunKey, registry.SET_VALUE)
	if err != nil {
		return err
	}
	defer k.Close()
	return k.SetStringValue(name, value)
}

// Delete implements values.
func (runKey) Delete(name string) error {
	k, err := registry.OpenKey(registry.CURRENT_USER, RunKey, registry.SET_VALUE)
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer k.Close()
	if err := k.DeleteValue(name); !errors.Is(err, registry.ErrNotExist) {
		return err
	}
	return nil
}

func sessionEnv() []string { return os.Environ() }

// AdministratorHint is how one becomes an administrator here.
const AdministratorHint = "a command line that was started by Run as administrator"

// IsAdministrator reports whether this process may change services of the machine. It
// asks the service manager, which decides that.
func IsAdministrator() bool {
	m, err := mgr.Connect()
	if err != nil {
		return false
	}
	_ = m.Disconnect()
	return true
}

// ExecuteAs is Execute as the user of a service of the machine, if that user is the
// caller; otherwise it does nothing, because acting for another user takes a password.
// The output includes the command's error messages.
func ExecuteAs(ctx context.Context, s Service, argv ...string) (string, error) {
	u, err := user.Current()
	if err != nil || !strings.EqualFold(u.Username, s.User) {
		return "", err
	}
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	return string(out), err
}
