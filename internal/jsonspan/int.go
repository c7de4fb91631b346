package jsonspan

import (
	"errors"
	"math"
)

var (
	errInt      = errors.New("jsonspan: not an integer")
	errIntRange = errors.New("jsonspan: integer out of range")
)

// Int returns the integer in value, which holds a JSON number and nothing else. Fractions
// and exponents are refused even if their value is whole, as encoding/json does, and so
// are numbers beyond 64 bits.
func Int(value []byte) (int64, error) {
	digits := value
	negative := len(value) > 0 && value[0] == '-'
	if negative {
		digits = value[1:]
	}
	if len(digits) == 0 || digits[0] == '0' && len(digits) > 1 {
		return 0, errInt
	}
	var n uint64
	for _, c := range digits {
		if !isDigit(c) {
			return 0, errInt
		}
		if n > math.MaxInt64/10 {
			n = math.MaxUint64 // stays out of range; the rest must still be digits
			continue
		}
		n = n*10 + uint64(c-'0')
	}
	if negative && n <= -math.MinInt64 {
		return -int64(n), nil
	}
	if n > math.MaxInt64 {
		return 0, errIntRange
	}
	return int64(n), nil
}
