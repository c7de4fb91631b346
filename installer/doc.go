// Package installer installs tether as a service, which the system starts automatically
// and keeps running.
//
// Rendering and applying are separate steps. Rendering is pure: a [Service] becomes the
// text of a systemd unit, a launchd property list or a Windows logon entry, for any
// system on any system. Applying is the job of a [Manager]: it writes the text to the
// system's place for it and tells the system's service manager, through the few commands
// of a [Runner].
//
// A service of tether is one daemon of one user. It runs shells, so it runs as the user
// whose shells they are. A service that runs as root needs Service.AllowRoot.
package installer
