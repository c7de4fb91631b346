// Package flagerror puts errors of a command line's flags into words for people.
//
//	text := flagerror.Text(err) // --for must be a time such as 30s, 90m or 48h, not "1d"
package flagerror

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Text returns the text for a person of an error of the command line's parser. Those of the standard library do not say what would be right.
func Text(err error) string {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err.Error()
	}
	want := ""
	number, ok := errors.AsType[*strconv.NumError](err)
	switch {
	case ok && number.Func == "ParseBool":
		want = "true or false"
	case ok && errors.Is(number.Err, strconv.ErrRange):
		want = "a smaller number"
	case ok:
		want = "a number"
	case strings.HasPrefix(wrong.Unwrap().Error(), "time: "):
		want = "a time such as 30s, 90m or 48h"
	default:
		return err.Error()
	}
	return fmt.Sprintf("--%s must be %s, not %.80q", wrong.GetFlag().Name, want, wrong.GetValue())
}
