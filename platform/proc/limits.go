package proc

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits are the umask, the nice value and the soft resource limits, which a program
// inherits from the one that starts it. Absent values stay as the starting process has
// them. Windows has none of them.
type Limits struct {
	// Umask is the permission bits that new files lack, 0 to 0777; in JSON a decimal
	// number.
	Umask *int `json:"umask,omitempty"`
	// Nice is the nice value, -20 to 19.
	Nice *int `json:"nice,omitempty"`
	// Soft is the soft resource limits, by RLIMIT's names in lower case, such as nofile,
	// in the units of setrlimit(2). NoLimit means none.
	Soft map[string]int64 `json:"soft,omitempty"`
}

// NoLimit is the value of a resource limit that does not limit.
const NoLimit = -1

// LimitsVerb is the first argument with which a program is started that must call
// BecomeLimited with the others.
const LimitsVerb = "start-with-limits"

// BecomeLimited sets the limits that its arguments name and becomes the program that they
// name. It returns the status with which to exit if it cannot. Windows never needs it.
func BecomeLimited(args []string) int { return becomeLimited(args) }

// statusLimited is the exit status of a program that could not become another one, as
// shells have it.
const statusLimited = 126

// OwnLimits returns all limits with which this process was started. Go raises the limit
// of open files when a program starts, so OwnLimits asks a shell for the one before,
// which takes a millisecond or two; without an answer that limit is absent. On macOS, a
// file that another goroutine makes meanwhile may get another umask.
func OwnLimits() Limits { return ownLimits() }

// IsZero reports whether no value is given.
func (l Limits) IsZero() bool { return l.Umask == nil && l.Nice == nil && len(l.Soft) == 0 }

// Check returns an error for values out of range, and for limits that this system does
// not have.
func (l Limits) Check() error {
	switch {
	case !l.IsZero() && len(resources) == 0:
		return fmt.Errorf("this system has no umask, nice value and resource limits")
	case l.Umask != nil && (*l.Umask < 0 || *l.Umask > 0o777):
		return fmt.Errorf("umask %d must be 0 to 511 (0777)", *l.Umask)
	case l.Nice != nil && (*l.Nice < -20 || *l.Nice > 19):
		return fmt.Errorf("nice value %d must be -20 to 19", *l.Nice)
	}
	for name, limit := range l.Soft {
		if _, ok := resources[name]; !ok {
			return fmt.Errorf("limit %.20q: this system has only %s", name, strings.Join(slices.Sorted(maps.Keys(resources)), ", "))
		}
		if limit < NoLimit {
			return fmt.Errorf("limit %s is %d: must be 0 or more, or %d for none", name, limit, NoLimit)
		}
	}
	return nil
}

// Stricter returns l without what is looser than in least. What is absent there stays as
// it is.
func (l Limits) Stricter(least Limits) Limits {
	if l.Umask != nil && least.Umask != nil {
		l.Umask = new(*l.Umask | *least.Umask)
	}
	if l.Nice != nil && least.Nice != nil {
		l.Nice = new(max(*l.Nice, *least.Nice))
	}
	l.Soft = maps.Clone(l.Soft)
	for name, limit := range l.Soft {
		if most, ok := least.Soft[name]; ok && looser(limit, most) {
			l.Soft[name] = most
		}
	}
	return l
}

func looser(limit, most int64) bool { return most != NoLimit && (limit == NoLimit || limit > most) }

// Without returns the values of l that differ from those of the other.
func (l Limits) Without(other Limits) Limits {
	if l.Umask != nil && other.Umask != nil && *l.Umask == *other.Umask {
		l.Umask = nil
	}
	if l.Nice != nil && other.Nice != nil && *l.Nice == *other.Nice {
		l.Nice = nil
	}
	l.Soft = maps.Clone(l.Soft)
	maps.DeleteFunc(l.Soft, func(name string, limit int64) bool {
		same, ok := other.Soft[name]
		return ok && same == limit
	})
	return l
}

// String returns the values in the form that ParseLimits reads, such as "umask=077
// nofile=512".
func (l Limits) String() string {
	var words []string
	if l.Umask != nil {
		words = append(words, fmt.Sprintf("umask=%03o", *l.Umask))
	}
	if l.Nice != nil {
		words = append(words, fmt.Sprintf("nice=%d", *l.Nice))
	}
	for _, name := range slices.Sorted(maps.Keys(l.Soft)) {
		words = append(words, fmt.Sprintf("%s=%d", name, l.Soft[name]))
	}
	return strings.Join(words, " ")
}

// ParseLimits is the inverse of String. It returns an error for what Check refuses, too.
func ParseLimits(text string) (l Limits, err error) {
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		base := 10
		if name == "umask" {
			base = 8
		}
		n, err := strconv.ParseInt(value, base, 64)
		if err != nil {
			return Limits{}, fmt.Errorf("%.40q is not of the form NAME=NUMBER", word)
		}
		switch name {
		case "umask":
			l.Umask = new(int(n))
		case "nice":
			l.Nice = new(int(n))
		default:
			if l.Soft == nil {
				l.Soft = map[string]int64{}
			}
			l.Soft[name] = n
		}
	}
	return l, l.Check()
}
