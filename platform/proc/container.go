package proc

import (
	"io/fs"
	"os"
	"strings"
)

// Container returns the name of the container that this process runs in, such as
// "docker", "podman" or "kubernetes"; "container" where only that much is known, and ""
// outside of containers. It looks at the marks that container managers leave: files, an
// environment variable, and the control group of process 1. It reads at most four small
// files.
func Container() string { return containerIn(os.DirFS("/"), os.Getenv) }

// containerIn is Container for a root directory and an environment.
func containerIn(root fs.FS, getenv func(string) string) string {
	if name := managerName(getenv("container")); name != "" { // systemd's convention, followed by podman, lxc and nspawn
		return name
	}
	for _, file := range []string{"run/host/container-manager", "run/systemd/container"} {
		if text, err := fs.ReadFile(root, file); err == nil && managerName(string(text)) != "" {
			return managerName(string(text))
		}
	}
	for _, mark := range []struct{ file, name string }{{".dockerenv", "docker"}, {"run/.containerenv", "podman"}} {
		if _, err := fs.Stat(root, mark.file); err == nil {
			return mark.name
		}
	}
	if getenv("KUBERNETES_SERVICE_HOST") != "" {
		return "kubernetes"
	}
	groups, _ := fs.ReadFile(root, "proc/1/cgroup") // not there on systems without control groups
	for _, mark := range []struct{ part, name string }{{"/docker", "docker"}, {"/kubepods", "kubernetes"}, {"libpod", "podman"}, {"/lxc", "lxc"}, {"containerd", "containerd"}} {
		if strings.Contains(string(groups), mark.part) {
			return mark.name
		}
	}
	return ""
}

// managerName returns the name that a container's manager gives itself, or "" if there is
// none.
func managerName(text string) string {
	name := strings.TrimSpace(text)
	odd := func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') }
	switch {
	case name == "" || name == "wsl": // WSL is a virtual machine of the person
		return ""
	case name == "oci" || strings.ContainsFunc(name, odd):
		return "container"
	}
	return name
}
