// Package installer makes tether a service that starts by itself and stays.
//
// It works in two steps that are kept apart. Rendering is pure: a [Service] becomes the text of a systemd unit, a launchd property list or
// a Windows logon entry, for any system on any system. Applying is a [Manager], which writes such a text where its system wants it and
// tells the system's service manager, through the few commands of a [Runner].
//
// A service of tether is one daemon of one user. It runs shells, so it runs as the user whose shells they are; nothing here makes one that
// runs as root unless it is told to.
package installer
