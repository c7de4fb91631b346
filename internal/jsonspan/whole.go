package jsonspan

import (
	"bytes"
	"math"
	"strconv"
)

// maxWhole is the largest number up to which float64 holds each whole number.
const maxWhole = 1 << 53

// Whole returns JSON in which whole numbers that are written with a fraction or an
// exponent, such as 20.0 and 2e1, are written as integers. JSON Schema counts them as
// integers and some clients send no others, but encoding/json does not decode them into
// an int. Numbers beyond 2^53, and JSON that is not valid, stay as they are. The result
// is data itself if nothing changes.
func Whole(data []byte) []byte {
	if !bytes.ContainsAny(data, ".eE") {
		return data
	}
	var out []byte // nil while nothing has changed
	kept := 0      // data up to here is in out
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			i++
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(data) && bytes.IndexByte([]byte("0123456789.eE+-"), data[end]) >= 0 {
				end++
			}
			if n, ok := whole(data[i:end]); ok {
				out = strconv.AppendInt(append(out, data[kept:i]...), n, 10)
				kept = end
			}
			i = end
		default:
			i++
		}
	}
	if out == nil {
		return data
	}
	return append(out, data[min(kept, len(data)):]...)
}

// whole returns the value of a number that is whole but not written as an integer.
func whole(number []byte) (n int64, ok bool) {
	if !bytes.ContainsAny(number, ".eE") || !Valid(number) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxWhole {
		return 0, false
	}
	return int64(f), true
}
