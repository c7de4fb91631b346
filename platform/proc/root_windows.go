package proc

import "golang.org/x/sys/windows"

// Root reports whether this process runs as LocalSystem, the account that nothing on the
// machine is closed to.
func Root() bool {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	return err == nil && user.User.Sid.IsWellKnown(windows.WinLocalSystemSid)
}
