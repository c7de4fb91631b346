package roam

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var queryUnbiasedInterruptTime = windows.NewLazySystemDLL("kernel32.dll").NewProc("QueryUnbiasedInterruptTime")

// asleep returns how long the machine has slept since boot: the difference between the
// time since boot and the clock that stops during sleep. Setting the wall clock changes
// neither.
func asleep() time.Duration {
	var awake uint64 // 100 ns
	if ok, _, _ := queryUnbiasedInterruptTime.Call(uintptr(unsafe.Pointer(&awake))); ok == 0 {
		return 0
	}
	return windows.DurationSinceBoot() - time.Duration(awake)*100
}
