package notify

import (
	"context"
	"fmt"
	"runtime"
	"time"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	shellNotifyIcon = windows.NewLazySystemDLL("shell32.dll").NewProc("Shell_NotifyIconW")
	createWindow    = windows.NewLazySystemDLL("user32.dll").NewProc("CreateWindowExW")
	destroyWindow   = windows.NewLazySystemDLL("user32.dll").NewProc("DestroyWindow")
	loadIcon        = windows.NewLazySystemDLL("user32.dll").NewProc("LoadIconW")
)

// Constants of Shell_NotifyIcon, see shellapi.h.
const (
	nimAdd, nimDelete        = 0, 2
	nifIcon, nifTip, nifInfo = 0x02, 0x04, 0x10
	niifRespectQuietTime     = 0x80
	hwndMessage              = ^uintptr(2) // -3: an invisible window that gets no broadcasts either
	idiQuestion              = 32514
	shownFor                 = 10 * time.Second // then send removes the icon, and Windows the notification with it
)

// notifyIconData is NOTIFYICONDATAW.
type notifyIconData struct {
	size                uint32
	window              uintptr
	id, flags, callback uint32
	icon                uintptr
	tip                 [128]uint16
	state, stateMask    uint32
	info                [256]uint16
	version             uint32
	infoTitle           [64]uint16
	infoFlags           uint32
	guid                windows.GUID
	balloonIcon         uintptr
}

// balloon returns an icon for the notification area, with a notification that shows title
// and body.
func balloon(window, icon uintptr, title, body string) *notifyIconData {
	d := &notifyIconData{window: window, id: 1, flags: nifIcon | nifTip | nifInfo, icon: icon, infoFlags: niifRespectQuietTime}
	d.size = uint32(unsafe.Sizeof(*d))
	put(d.tip[:], "tether")
	put(d.infoTitle[:], title)
	put(d.info[:], body)
	return d
}

// put writes as many whole characters of text as fit, and the zero that ends them.
func put(to []uint16, text string) {
	n := 0
	for _, r := range text {
		units := utf16.AppendRune(nil, r)
		if n+len(units) >= len(to) {
			break
		}
		n += copy(to[n:], units)
	}
	to[n] = 0
}

func available() bool { return true }

// send shows a balloon. The balloon needs a window, which belongs to one thread: a
// goroutine keeps that thread for shownFor, also after send has returned.
func send(ctx context.Context, title, body string) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		class, _ := windows.UTF16PtrFromString("STATIC")
		window, _, err := createWindow.Call(0, uintptr(unsafe.Pointer(class)), 0, 0, 0, 0, 0, 0, hwndMessage, 0, 0, 0)
		if window == 0 {
			done <- fmt.Errorf("%w: %w", ErrUnsupported, err)
			return
		}
		defer destroyWindow.Call(window)
		icon, _, _ := loadIcon.Call(0, idiQuestion)
		d := balloon(window, icon, title, body)
		if ok, _, _ := shellNotifyIcon.Call(nimAdd, uintptr(unsafe.Pointer(d))); ok == 0 {
			done <- ErrUnsupported // this process is a service, or Explorer does not run
			return
		}
		done <- nil
		time.Sleep(shownFor)
		shellNotifyIcon.Call(nimDelete, uintptr(unsafe.Pointer(d)))
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
