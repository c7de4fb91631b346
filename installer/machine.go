package installer

import (
	"fmt"

	"github.com/kardianos/service"
)

// machineControl returns kardianos/service's control of a service of the machine. options hold the text of the file on systems that have
// one; args are the program's arguments on Windows, which has no file.
func machineControl(name string, s Service, args []string, options service.KeyValue) (service.Service, error) {
	c, err := service.New(idle{}, &service.Config{
		Name: name, DisplayName: Name, Description: description, Executable: s.Program, Arguments: args, UserName: s.User, Option: options,
	})
	if err != nil {
		return nil, fmt.Errorf("services of this machine: %w", err)
	}
	return c, nil
}

const description = "lends terminals of this machine to agent hosts"

// idle is the program that kardianos/service would run. It does nothing: here that package only installs and controls services.
type idle struct{}

// Start is never called.
func (idle) Start(service.Service) error { return nil }

// Stop is never called.
func (idle) Stop(service.Service) error { return nil }
