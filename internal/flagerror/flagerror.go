// Package flagerror puts errors of a command line's flags into words for people.
//
//	text := flagerror.Text(err) // --for must be a time such as 30s, 90m or 48h, not "1d"
package flagerror

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"tether/internal/lazyregexp"
)

// numbers are the types of flags that take one number.
var numbers = lazyregexp.New(`^(?:u?int|float)\d*$`)

// Text returns the text for a person of an error of the command line's parser. Those of
// the parser do not say enough.
func Text(err error) string {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err.Error()
	}
	want, kind := "", wrong.GetFlag().Value.Type()
	_, number := strconv.ParseInt(wrong.GetValue(), 10, 64)
	switch {
	case kind == "bool":
		want = "true or false"
	case kind == "duration":
		want = "a time such as 30s, 90m or 48h"
	case kind == "past":
		want = "a time that is over, such as 30m, 12h or 2d"
	case !numbers().MatchString(kind):
		return err.Error()
	case errors.Is(number, strconv.ErrRange):
		want = "a smaller number"
	default:
		want = "a number"
	}
	return fmt.Sprintf("--%s must be %s, not %.80q", wrong.GetFlag().Name, want, wrong.GetValue())
}
