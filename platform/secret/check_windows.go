package secret

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// noWait is not needed on Windows.
const noWait = 0

// Rights to read the contents of a file or directory, or to change it.
const (
	mayRead  = windows.GENERIC_ALL | windows.GENERIC_READ | windows.FILE_READ_DATA
	mayWrite = windows.GENERIC_ALL | windows.GENERIC_WRITE | windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | fileDeleteChild |
		windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER
	fileDeleteChild = 0x40
)

// trusted are accounts that reach every file anyway, as root does elsewhere: the system,
// administrators, and the placeholders for a file's creator and owner.
var trusted = []windows.WELL_KNOWN_SID_TYPE{
	windows.WinLocalSystemSid, windows.WinBuiltinAdministratorsSid, windows.WinCreatorOwnerSid, windows.WinCreatorOwnerRightsSid,
}

func check(path string, _ fs.FileInfo, _ string) error {
	return closed(path, mayRead|mayWrite, "is accessible to")
}

func checkOwned(path string, _ fs.FileInfo) error { return closed(path, mayWrite, "is writable by") }

// closed checks that the file belongs to this user or to a trusted account, and that no
// other account has one of these rights.
func closed(path string, rights windows.ACCESS_MASK, what string) error {
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return &fs.PathError{Op: "read permissions of", Path: path, Err: err}
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("look up the user of this process: %w", err)
	}
	isOurs := func(sid *windows.SID) bool { return sid.Equals(user.User.Sid) || isTrusted(sid) }
	owner, _, err := descriptor.Owner()
	if err != nil || !isOurs(owner) {
		return errors.Join(fmt.Errorf("%s belongs to another user", path), err)
	}
	list, _, err := descriptor.DACL()
	if err != nil || list == nil { // without a list, everybody has access
		return errors.Join(openTo(path, what, "everybody"), err)
	}
	for i := range uint32(list.AceCount) {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, i, &entry); err != nil {
			return fmt.Errorf("permissions of %s: %w", path, err)
		}
		sid := (*windows.SID)(unsafe.Pointer(&entry.SidStart))
		if entry.Header.AceType == windows.ACCESS_ALLOWED_ACE_TYPE && entry.Header.AceFlags&windows.INHERIT_ONLY_ACE == 0 &&
			entry.Mask&rights != 0 && !isOurs(sid) {
			return openTo(path, what, nameOf(sid))
		}
	}
	return nil
}

func openTo(path, what, who string) error {
	return fmt.Errorf(`%s %s %s; make it private: icacls "%s" /inheritance:r /grant:r "%%USERNAME%%:F"`, path, what, who, path)
}

func isTrusted(sid *windows.SID) bool {
	for _, kind := range trusted {
		if sid.IsWellKnown(kind) {
			return true
		}
	}
	return false
}

// nameOf returns the readable name of a user or group.
func nameOf(sid *windows.SID) string {
	name, domain, _, err := sid.LookupAccount("")
	switch {
	case err != nil:
		return sid.String()
	case domain == "":
		return name
	}
	return domain + `\` + name
}

// onlyUser returns the permissions of files and directories that this package makes: all
// rights for this user, administrators and the system, and none for others, whatever the
// directory above grants. The later contents of a directory inherit them.
func onlyUser() (*windows.SecurityAttributes, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("look up the user of this process: %w", err)
	}
	s, err := windows.SecurityDescriptorFromString(fmt.Sprintf("D:P(A;OICI;FA;;;%v)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)", user.User.Sid))
	if err != nil {
		return nil, err
	}
	rights := &windows.SecurityAttributes{SecurityDescriptor: s}
	rights.Length = uint32(unsafe.Sizeof(*rights))
	return rights, nil
}

// makeDir makes the directory and its parents, all of them closed to others.
func makeDir(path string) error {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", path)
		}
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	rights, err := onlyUser()
	if err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	if err := windows.CreateDirectory(name, rights); err != nil && !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return nil
}

func openRead(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ, shareAll, nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// shareAll lets other processes rename, replace and remove an open file, as on other
// systems.
const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE

// openFile opens a file, or makes it if flags say so; a new file is closed to others. It
// does not follow a link: a link is an error.
func openFile(path string, flags int) (*os.File, error) {
	access, how := uint32(windows.GENERIC_READ), uint32(windows.OPEN_EXISTING)
	switch {
	case flags&os.O_APPEND != 0:
		access = windows.FILE_APPEND_DATA | windows.FILE_READ_ATTRIBUTES | windows.SYNCHRONIZE
	case flags&(os.O_WRONLY|os.O_RDWR) != 0:
		access |= windows.GENERIC_WRITE | windows.DELETE
	}
	switch {
	case flags&os.O_EXCL != 0:
		how = windows.CREATE_NEW
	case flags&os.O_CREATE != 0:
		how = windows.OPEN_ALWAYS
	}
	rights, err := onlyUser()
	if err != nil {
		return nil, err
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	h, err := windows.CreateFile(name, access, shareAll, rights, how,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT|windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err == nil && info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 {
		_ = windows.CloseHandle(h)
		return nil, fmt.Errorf("%s is a symbolic link", path)
	}
	return os.NewFile(uintptr(h), path), nil
}

// createTemp makes a file with a new name that begins with prefix.
func createTemp(dir, prefix string) (*os.File, error) {
	return openFile(filepath.Join(dir, prefix+rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// replaceTime is how long replace waits for processes that have the file open: Windows
// forbids replacing an open file, but readers and virus scanners close it soon.
// replaceLook is the time between two attempts.
const (
	replaceTime = time.Second
	replaceLook = 10 * time.Millisecond
)

// replace renames from to to, which may exist.
func replace(from, to string) error {
	for end := time.Now().Add(replaceTime); ; time.Sleep(replaceLook) {
		err := os.Rename(from, to)
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !busy || time.Now().After(end) {
			return err
		}
	}
}

// syncDir does nothing: Windows cannot sync directories, and NTFS journals a rename.
func syncDir(string) error { return nil }
