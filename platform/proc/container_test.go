package proc

import (
	"testing"
	"testing/fstest"
)

func TestContainer(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, c := range []struct {
		name  string
		files fstest.MapFS
		env   map[string]string
		want  string
	}{
		{"a machine", fstest.MapFS{"proc/1/cgroup": file("0::/init.scope\n")}, nil, ""},
		{"nothing to see", fstest.MapFS{}, nil, ""},
		{"WSL", fstest.MapFS{"run/systemd/container": file("wsl\n")}, nil, ""},
		{"docker", fstest.MapFS{".dockerenv": file("")}, nil, "docker"},
		{"docker, control groups", fstest.MapFS{"proc/1/cgroup": file("1:cpu:/docker/0123abc\n")}, nil, "docker"},
		{"podman", fstest.MapFS{"run/.containerenv": file("")}, map[string]string{"container": "podman"}, "podman"},
		{"podman without its variable", fstest.MapFS{"run/.containerenv": file("engine=\"podman\"\n")}, nil, "podman"},
		{"kubernetes", fstest.MapFS{}, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"},
		{"kubernetes, control groups", fstest.MapFS{"proc/1/cgroup": file("0::/kubepods/burstable/pod1\n")}, nil, "kubernetes"},
		{"nspawn", fstest.MapFS{"run/systemd/container": file("systemd-nspawn")}, nil, "systemd-nspawn"},
		{"lxc", fstest.MapFS{}, map[string]string{"container": "lxc"}, "lxc"},
		{"some manager", fstest.MapFS{"run/host/container-manager": file("oci\n")}, nil, "container"},
		{"a strange name", fstest.MapFS{}, map[string]string{"container": "\x1b[31mx"}, "container"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := containerIn(c.files, func(name string) string { return c.env[name] }); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
