package shell

import "os/user"

// account asks Open Directory, because /etc/passwd on macOS lists no ordinary users.
func account() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return fromDirectory(ask("/usr/bin/dscl", ".", "-read", "/Users/"+u.Username, "UserShell"))
}
