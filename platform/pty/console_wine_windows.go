//go:build wine

package pty

import (
	"encoding/hex"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Wine 10 attaches a program to its pseudo-console but gives it no standard handles:
// cmd.exe sees the end of its input at once. For the tests that run there (make
// test-windows), and for nothing else, each program is therefore started by this one,
// which opens the console for it. Remove this when Wine opens them by itself.

// trampoline is the argument by which this program knows that it is only to start another
// one.
const trampoline = "start-on-console"

var getBinaryType = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetBinaryTypeW")

// onConsole returns the command by which this program starts the wanted one. It also
// finds files that are not programs.
func onConsole(application, line string) (string, string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", "", err
	}
	app, err := windows.UTF16PtrFromString(application)
	if err != nil {
		return "", "", err
	}
	var kind uint32
	if ok, _, _ := getBinaryType.Call(uintptr(unsafe.Pointer(app)), uintptr(unsafe.Pointer(&kind))); ok == 0 {
		return "", "", windows.ERROR_BAD_EXE_FORMAT
	}
	return self, `"` + self + `" ` + trampoline + " " + hex.EncodeToString([]byte(application)) + " " + line, nil
}

func init() {
	if len(os.Args) > 2 && os.Args[1] == trampoline {
		windows.ExitProcess(startOnConsole())
	}
}

// startOnConsole runs the command that onConsole has wrapped and returns its status.
func startOnConsole() uint32 {
	full := windows.UTF16PtrToString(windows.GetCommandLine())
	_, rest, _ := strings.Cut(full, trampoline+" ")
	name, line, _ := strings.Cut(rest, " ")
	application, err := hex.DecodeString(name)
	if err != nil {
		return 250
	}
	info := windows.StartupInfo{Flags: windows.STARTF_USESTDHANDLES, StdInput: openConsole("CONIN$")}
	info.StdOutput, info.StdErr = openConsole("CONOUT$"), openConsole("CONOUT$") // two: a program may close one
	info.Cb = uint32(unsafe.Sizeof(info))
	app, _ := windows.UTF16PtrFromString(string(application))
	text, _ := windows.UTF16FromString(line)
	var p windows.ProcessInformation
	if err := windows.CreateProcess(app, &text[0], nil, nil, true, 0, nil, nil, &info, &p); err != nil {
		return 251
	}
	if _, err := windows.WaitForSingleObject(p.Process, windows.INFINITE); err != nil {
		return 252
	}
	var code uint32
	if err := windows.GetExitCodeProcess(p.Process, &code); err != nil {
		return 253
	}
	return code
}

// openConsole opens the console's input or output so that a child inherits it.
func openConsole(name string) windows.Handle {
	wide, _ := windows.UTF16PtrFromString(name)
	inherit := windows.SecurityAttributes{InheritHandle: 1}
	inherit.Length = uint32(unsafe.Sizeof(inherit))
	h, err := windows.CreateFile(wide, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE,
		&inherit, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return 0
	}
	return h
}
