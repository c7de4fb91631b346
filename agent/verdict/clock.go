package verdict

import "bytes"

// clock returns the length of the date or time at the beginning of p, 0 if there is none:
// 2026-01-02T03:04:05.678Z, 2026/01/02 03:04:05, 03:04:05, 3:04 PM, and 12:5, which is a
// line and a column.
func clock(p []byte) int {
	i := span(p, isDigit)
	if size := date(p); size > 0 {
		i = size
		if i < len(p) && (p[i] == 'T' || p[i] == ' ' || p[i] == ',') {
			j := i + 1 + span(p[i+1:], func(c byte) bool { return c == ' ' })
			if size := ofDay(p[j:]); size > 0 {
				i = j + size
			}
		}
		return i
	}
	if size := ofDay(p); size > 0 {
		return size
	}
	if i <= 2 && i < len(p) && p[i] == ' ' { // 6 May 2026
		if size := calendar(p[i+1:]); size > 0 {
			return i + 1 + size
		}
	}
	return 0
}

// date returns the length of a date in digits.
func date(p []byte) int {
	if len(p) < 10 || p[4] != '-' && p[4] != '/' || p[7] != p[4] {
		return 0
	}
	for i, c := range p[:10] {
		if i != 4 && i != 7 && !isDigit(c) {
			return 0
		}
	}
	if len(p) > 10 && isDigit(p[10]) {
		return 0
	}
	return 10
}

// ofDay returns the length of a time of the day.
func ofDay(p []byte) int {
	i := span(p, isDigit)
	if i == 0 || i > 5 {
		return 0
	}
	parts := 0
	for i+1 < len(p) && p[i] == ':' && isDigit(p[i+1]) {
		i += 1 + span(p[i+1:], isDigit)
		parts++
	}
	if parts == 0 || parts > 2 {
		return 0
	}
	if i+1 < len(p) && (p[i] == '.' || p[i] == ',') && isDigit(p[i+1]) {
		i += 1 + span(p[i+1:], isDigit)
	}
	for _, half := range []string{" AM", " PM", "AM", "PM", " am", " pm", "am", "pm", "Z"} {
		if bytes.HasPrefix(p[i:], []byte(half)) && (i+len(half) == len(p) || !isWord(p[i+len(half)])) {
			return i + len(half)
		}
	}
	if i+2 < len(p) && (p[i] == '+' || p[i] == '-') && isDigit(p[i+1]) && parts == 2 {
		i += 1 + span(p[i+1:], func(c byte) bool { return isDigit(c) || c == ':' })
	}
	return i
}

// calendar returns the length of a date with names at the beginning of p: Mon, 02 Jan
// 2026; Jan  2; Fri Jan 2.
func calendar(p []byte) int {
	i := 0
	if len(p) < 4 {
		return 0
	}
	if bytes.Contains([]byte("Mon Tue Wed Thu Fri Sat Sun"), p[:3]) && (p[3] == ' ' || p[3] == ',') {
		i = 3 + span(p[3:], isGap)
		i += span(p[i:], isDigit)
		i += span(p[i:], isGap)
	}
	if len(p) < i+4 || !bytes.Contains([]byte("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"), p[i:i+3]) || p[i+3] != ' ' || p[i] == ' ' {
		return 0
	}
	i += 3
	gap := span(p[i:], isGap)
	digits := span(p[i+gap:], isDigit)
	if digits == 0 || digits > 4 {
		return 0
	}
	i += gap + digits
	gap = span(p[i:], isGap)
	if size := ofDay(p[i+gap:]); size > 0 {
		i += gap + size
	}
	return i
}

func isGap(c byte) bool { return c == ' ' || c == ',' }

// Units of durations; the short ones only count directly behind the number.
var (
	units      = []string{"milliseconds", "millisecond", "microseconds", "seconds", "second", "minutes", "minute", "hours", "hour", "mins", "min", "secs", "sec", "ms", "ns", "us", "µs", "μs", "s"}
	shortUnits = []string{"m", "h", "d"}
)

// duration returns the length of the duration or the rate at the beginning of p, 0 if
// there is none: 1.2s, 1m2.5s, 12 ms, 3 seconds, 10.2it/s, 5.1 MB/s.
func duration(p []byte) int {
	size := 0
	for {
		part := amount(p[size:])
		if part == 0 {
			return size
		}
		size += part
		if size < len(p) && p[size] == ' ' && amount(p[size+1:]) > 0 {
			size++
		}
	}
}

// amount returns the length of a number with one unit.
func amount(p []byte) int {
	i := span(p, isDigit)
	if i == 0 {
		return 0
	}
	if i+1 < len(p) && (p[i] == '.' || p[i] == ',') && isDigit(p[i+1]) {
		i += 1 + span(p[i+1:], isDigit)
	}
	near := i
	if i < len(p) && p[i] == ' ' {
		i++
	}
	if letters := span(p[i:], isLetter); letters > 0 && letters <= 5 && bytes.HasPrefix(p[i+letters:], []byte("/s")) && !wordAt(p, i+letters+2) {
		return i + letters + 2
	}
	for _, unit := range units {
		if end := i + len(unit); bytes.HasPrefix(p[i:], []byte(unit)) && (!wordAt(p, end) || near == i && end < len(p) && isDigit(p[end])) {
			return end
		}
	}
	for _, unit := range shortUnits {
		if end := near + 1; bytes.HasPrefix(p[near:], []byte(unit)) && (!wordAt(p, end) || isDigit(p[end])) {
			return end
		}
	}
	return 0
}

func wordAt(p []byte, i int) bool { return i < len(p) && (isWord(p[i]) || p[i] >= 0x80) }
