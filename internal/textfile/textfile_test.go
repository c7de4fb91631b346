package textfile_test

import (
	"testing"

	"tether/internal/textfile"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		data, want string
		fails      bool
	}{
		{"", "", false},
		{"a = 1\n", "a = 1\n", false},
		{"\xef\xbb\xbfa = 1\r\n", "a = 1\r\n", false},
		{"\xef\xbb\xbf", "", false},
		{"\xef\xbb\xbf\xef\xbb\xbfa", "\xef\xbb\xbfa", false},
		{"\xff\xfea\x00", "", true},
		{"\xfe\xff\x00a", "", true},
	} {
		got, err := textfile.Decode([]byte(c.data))
		if string(got) != c.want || (err != nil) != c.fails {
			t.Errorf("%q: %q, %v; want %q, an error: %v", c.data, got, err, c.want, c.fails)
		}
	}
}
