package shell

import "os/user"

// account asks Open Directory: /etc/passwd has no people on macOS.
func account() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return fromDirectory(ask("/usr/bin/dscl", ".", "-read", "/Users/"+u.Username, "UserShell"))
}
