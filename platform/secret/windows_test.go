//go:build windows

package secret_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// rightsOf returns the entries of a file's access list, such as "S-1-1-0 1f01ff".
func rightsOf(t *testing.T, path string) string {
	t.Helper()
	descriptor := must.Get(windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION))(t)
	list, _, err := descriptor.DACL()
	must.Do(t, err)
	var all []string
	for i := range uint32(list.AceCount) {
		var entry *windows.ACCESS_ALLOWED_ACE
		must.Do(t, windows.GetAce(list, i, &entry))
		all = append(all, fmt.Sprintf("%v %x", (*windows.SID)(unsafe.Pointer(&entry.SidStart)), entry.Mask))
	}
	return strings.Join(all, ", ")
}

const (
	everyone = "S-1-1-0"
	system   = "S-1-5-18"
	admins   = "S-1-5-32-544"
)

func self(t *testing.T) string {
	t.Helper()
	user := must.Get(windows.GetCurrentProcessToken().GetTokenUser())(t)
	return user.User.Sid.String()
}

// wantClosed fails the test unless only this user, the system and administrators may use
// these files.
func wantClosed(t *testing.T, _ os.FileMode, paths ...string) {
	t.Helper()
	for _, path := range paths {
		for entry := range strings.SplitSeq(rightsOf(t, path), ", ") {
			if sid, _, _ := strings.Cut(entry, " "); sid != self(t) && sid != system && sid != admins {
				t.Errorf("%s is open to %s", path, entry)
			}
		}
	}
}

// open makes a file or directory with the given security descriptor.
func open(t *testing.T, path, rights string, isDir bool) {
	t.Helper()
	descriptor, err := windows.SecurityDescriptorFromString("D:P" + rights)
	must.Do(t, err)
	sa := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	sa.Length = uint32(unsafe.Sizeof(*sa))
	name := must.Get(windows.UTF16PtrFromString(path))(t)
	if isDir {
		err = windows.CreateDirectory(name, sa)
	} else {
		var h windows.Handle
		if h, err = windows.CreateFile(name, windows.GENERIC_WRITE, 0, sa, windows.CREATE_NEW, 0, 0); err == nil {
			err = windows.CloseHandle(h)
		}
	}
	must.Do(t, err)
}

func TestRefused(t *testing.T) {
	base := filepath.Join(t.TempDir(), "x")
	must.Do(t, secret.Dir(base))
	path := func(name string) string { return filepath.Join(base, name) }
	mine := fmt.Sprintf("(A;;FA;;;%s)", self(t))
	open(t, path("open"), mine+"(A;;FR;;;WD)", false)
	open(t, path("closed"), mine+"(A;;FA;;;SY)(A;;FA;;;BA)", false)
	open(t, path("opendir"), mine+"(A;;FR;;;WD)", true)
	must.Do(t, secret.WriteFile(path("big"), make([]byte, 1<<20+1)))
	read := func(name string) error { _, err := secret.ReadFile(path(name)); return err }
	owned := func(name string) error { _, err := secret.ReadOwned(path(name)); return err }
	add := func(name string) error {
		f, err := secret.OpenAppend(path(name))
		if err == nil {
			f.Close()
		}
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"read open file", read("open"), "icacls "},
		{"append to open file", add("open"), "icacls "},
		{"open directory", secret.Dir(path("opendir")), "icacls "},
		{"read directory", read("opendir"), "not a file"},
		{"file as directory", secret.Dir(path("closed")), "not a directory"},
		{"large file", read("big"), secret.ErrTooLarge.Error()},
		{"write without directory", secret.WriteFile(path(`none\f`), nil), "none"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in it", c.name, c.err, c.want)
		}
	}
	for name, err := range map[string]error{
		"closed file": read("closed"), "configuration that others can read": owned("open"), "append to closed file": add("closed"),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := read("missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v; want ErrNotExist", err)
	}
	if left, _ := filepath.Glob(path(".*")); len(left) > 0 {
		t.Errorf("failed writes left %v", left)
	}
}

func TestConfigurationThatOthersCanChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared")
	open(t, path, fmt.Sprintf("(A;;FA;;;%s)(A;;FA;;;WD)", self(t)), false)
	if strings.Contains(rightsOf(t, path), everyone+" 1200a9") {
		testkit.NotOnWine(t, "it lets nobody else write, whatever the list says")
	}
	if _, err := secret.ReadOwned(path); err == nil || !strings.Contains(err.Error(), "is writable by") {
		t.Errorf("read: %v; want a complaint", err)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	testkit.NotOnWine(t, "it makes links without a word and without a link")
	dir := filepath.Join(t.TempDir(), "x")
	must.Do(t, secret.Dir(dir))
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	must.Do(t, secret.WriteFile(target, nil))
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("this account may not make links: %v", err)
	}
	if _, err := secret.ReadFile(link); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("read through a link: %v", err)
	}
}

// A file that another program reads for a short time can be replaced.
func TestReplaceWaitsForReaders(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	must.Do(t, secret.WriteFile(name, []byte("old")))
	reader := must.Get(os.Open(name))(t)
	time.AfterFunc(50*time.Millisecond, func() { reader.Close() })
	check.OK(t, secret.WriteFile(name, []byte("new")))
	if got, err := secret.ReadFile(name); string(got) != "new" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}
