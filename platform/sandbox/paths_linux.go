package sandbox

// systemDirs are the system's directories that a Wall shows, read-only. /run and /var
// contain sockets, so only these directories below them are shown.
var systemDirs = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/snap", "/gnu/store", "/home/linuxbrew/.linuxbrew",
	"/run/current-system", "/run/opengl-driver", "/var/lib/dpkg", "/var/lib/rpm",
	"/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm",
}

// socketVars are environment variables that name the person's sockets. A Wall's command
// gets only those whose value is a granted socket.
var socketVars = []string{
	"DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST", "CONTAINER_HOST", "PODMAN_HOST",
	"WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DISPLAY", "XAUTHORITY", "SESSION_MANAGER", "ICEAUTHORITY", "PULSE_SERVER", "TMUX", "STY",
	"VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "NVIM", "NVIM_LISTEN_ADDRESS", "EMACS_SERVER_FILE", "KITTY_LISTEN_ON", "WEZTERM_UNIX_SOCKET",
}
