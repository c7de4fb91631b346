package tty

import (
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Piped reports whether f gives a program input that nobody types: a pipe or a file, but
// neither a console nor the null device. The pipes by which terminals of MSYS2 and Cygwin
// connect programs for Windows count as typed at.
func Piped(f *os.File) bool {
	kind, err := windows.GetFileType(windows.Handle(f.Fd()))
	switch {
	case err != nil, Is(f):
		return false
	case kind == windows.FILE_TYPE_PIPE:
		return !strings.HasSuffix(nameOf(windows.Handle(f.Fd())), "-master")
	}
	return kind == windows.FILE_TYPE_DISK
}

// nameOf returns the name of a file or pipe within its volume, or "".
func nameOf(h windows.Handle) string {
	var info struct {
		bytes uint32
		name  [windows.MAX_PATH]uint16
	}
	if windows.GetFileInformationByHandleEx(h, windows.FileNameInfo, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))) != nil {
		return ""
	}
	return windows.UTF16ToString(info.name[:min(int(info.bytes/2), len(info.name))])
}
