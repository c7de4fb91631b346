package agenttools

import (
	"math"
	"reflect"
	"time"

	"tether/screen"
)

// Bounds of an answer that comes from another machine.
const (
	maxSaneList = 1000 // entries
	maxSaneInt  = 1 << 53
	// MaxSaneText bounds each text, in bytes.
	MaxSaneText = 4 << 10
)

// Sane reports whether an answer of another machine can be shown: its numbers, times,
// lists and texts are in range. It cleans the texts, as screen.Clean does. The caller
// takes out before what may be larger, and maps. answer is a pointer to a struct.
func Sane(answer any) bool { return sane(reflect.ValueOf(answer)) }

// sane is Sane for a part. An int may be negative, as an exit status; offsets, sizes and
// times are int64.
func sane(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || sane(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if !sane(v.Index(i)) {
				return false
			}
		}
		return v.Len() <= maxSaneList
	case reflect.String:
		text := screen.Clean(v.String())
		v.SetString(text)
		return len(text) <= MaxSaneText
	case reflect.Int:
		return v.Int() >= math.MinInt32 && v.Int() <= math.MaxInt32
	case reflect.Int64:
		return v.Int() >= 0 && v.Int() <= maxSaneInt
	case reflect.Float64:
		return v.Float() >= 0 && v.Float() <= maxSaneInt
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			return at.IsZero() || at.Year() >= 1970 && at.Before(time.Now().Add(24*time.Hour))
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && !sane(f) {
				return false
			}
		}
		return true
	case reflect.Bool:
		return true
	case reflect.Map: // whoever knows it checks it
		return v.Len() == 0
	}
	return false // of a kind that no answer has
}
