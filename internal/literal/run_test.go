package literal_test

import (
	"regexp"
	"strings"
	"testing"

	"tether/internal/literal"
)

// A line without the run does not match; one with it is tried.
func TestRequiredRun(t *testing.T) {
	for _, c := range []struct {
		expression, line string
		may              bool
	}{
		{`at .*:\d{9}`, "at f (a.js:12:345)", false},
		{`at .*:\d{9}`, "at f (a.js:12345678)", false},
		{`at .*:\d{9}`, "at f (a.js:123456789)", true},
		{`at .*:\d{9}`, "at 123456789", true}, // the expression decides
		{`([0-9a-f]{7,40})$`, "commit 12345g7", false},
		{`([0-9a-f]{7,40})$`, "commit 12345f7", true},
		{`\pL{4}`, "日本語", true}, // some bytes too many are no harm
		{`\pL{4}`, "1234 ab", false},
		{`(?i)[a-d]{4}`, "ABCd", true},
		{`\d{3}`, "", true},
		{`\d{9}|x`, "", true},
		{`(?:\d{9})?`, "", true},
		{`(`, "", true},
		{`[^x]{5}`, "xx\xff\xfe\x00ab", true},
	} {
		r := literal.RequiredRun(c.expression)
		if r.In([]byte(c.line)) != c.may {
			t.Errorf("%s in %q: %v", c.expression, c.line, !c.may)
		}
	}
}

func FuzzRequiredRun(f *testing.F) {
	for _, e := range []string{`at .*:\d{9}`, `[0-9a-f]{7,}$`, `(?i)[a-k]{4}`, `\pL{4}`, `(\w{5}){2}`, `[^x]{4}`} {
		f.Add(e, "at f:123456789 日本語語 abcdefK\u212akk \xff\xff\xff\xff")
	}
	f.Fuzz(func(t *testing.T, expression, line string) {
		re, err := regexp.Compile(expression)
		if err != nil || len(expression) > 100 || strings.Contains(line, "\n") {
			return
		}
		if r := literal.RequiredRun(expression); re.MatchString(line) && !r.In([]byte(line)) {
			t.Errorf("%q matches %q, in which no run is", expression, line)
		}
	})
}
