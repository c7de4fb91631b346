package config

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written as a string with a unit: "64MiB". The units are B,
// KiB, MiB, GiB and TiB.
type Size int64

// units from the largest to the smallest.
var units = []struct {
	name string
	size Size
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

var errSize = errors.New(`want a number and a unit, such as "64KiB", "4MiB" or "1GiB"`)

// ParseSize reads the text that String writes. The number may have a fraction: "1.5GiB".
// It is not negative.
func ParseSize(s string) (Size, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		if strings.Trim(digits, "0123456789.") != "" {
			return 0, errSize // no other notation of numbers
		}
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return 0, errSize
		}
		if f *= float64(u.size); f >= 1<<53 || f != math.Trunc(f) { // beyond, not every number has a float
			return 0, errSize
		}
		return Size(f), nil
	}
	return 0, errSize
}

// String returns the size in the largest unit that needs no fraction.
func (s Size) String() string {
	for _, u := range units {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return "0B"
}

// Duration is a time span, written as a string with units: "1m30s". The units are those
// of [time.ParseDuration] and, in front, d for days of 24 hours.
type Duration time.Duration

var errDuration = errors.New(`want a number and a unit, such as "500ms", "30s", "1h30m" or "7d"`)

const day = 24 * time.Hour

// ParseDuration reads the text that String writes. It is not negative.
func ParseDuration(s string) (Duration, error) {
	number, rest, ok := strings.Cut(s, "d")
	if !ok {
		number, rest = "0", s
	}
	days, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return 0, errDuration
	}
	if ok && rest == "" {
		rest = "0s"
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || strings.HasPrefix(rest, "-") || d > math.MaxInt64-time.Duration(days)*day {
		return 0, errDuration
	}
	return Duration(time.Duration(days)*day + d), nil
}

// String leaves out the units that are zero: "1h", not "1h0m0s". It counts in days from
// two on.
func (d Duration) String() string {
	if n := time.Duration(d) / day; n >= 2 && time.Duration(d)%day == 0 {
		return strconv.FormatInt(int64(n), 10) + "d"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Port is a TCP port, written as a number, or as the one word that its key allows.
type Port int

const (
	AutoPort  Port = -1 // of Declared.Port: a free port
	GivenPort Port = -2 // of Ready.Port: the port that the terminal was given
)

// portPlace stands for the given port in other values.
const portPlace = "{port}"

var portWords = map[Port]string{AutoPort: "auto", GivenPort: portPlace}

// String returns the number or the word.
func (p Port) String() string {
	return cmp.Or(portWords[p], strconv.Itoa(int(p)))
}

// somePort stands for the given port while nobody knows it.
const somePort = 1

// At returns the declaration with the port that the terminal was given in its condition
// and its variables; 0 changes nothing.
func (d Declared) At(port int) Declared {
	if port == 0 {
		return d
	}
	number := strconv.Itoa(port)
	if d.Ready.Port == GivenPort {
		d.Ready.Port = Port(port)
	}
	d.Ready.HTTP = strings.ReplaceAll(d.Ready.HTTP, portPlace, number)
	d.Env, d.Ready.Command = append(slices.Clone(d.Env), "PORT="+number), slices.Clone(d.Ready.Command)
	for _, texts := range [][]string{d.Env, d.Ready.Command} {
		for i, text := range texts {
			texts[i] = strings.ReplaceAll(text, portPlace, number)
		}
	}
	return d
}
