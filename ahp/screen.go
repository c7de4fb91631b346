package ahp

import (
	"encoding/json"
	"unicode/utf8"
)

// MaxScreen bounds the data of a [Screen], in bytes; MaxScreenSizes bounds its sizes.
const (
	MaxScreen      = 2 << 20
	MaxScreenSizes = 4096

	// MaxOutputScreen bounds the screens that an owner sends: the data of a Screen in
	// terminal/output, as JSON.
	MaxOutputScreen = 512 << 10
)

// Screen is a terminal's screen at a place in its content: the result of output that is
// no longer kept. Its Data counts in no offset. A reader that feeds Data, and then the
// content after that place, to a new terminal emulator of Cols and Rows, and resizes it
// as Sizes says, shows the same screen as a reader of the whole output.
//
// It is under ScreenKey in the _meta of a state, and in that of terminal/data and
// terminal/output actions. In an action it is the screen after the action's text, and has
// neither After nor Sizes.
type Screen struct {
	Cols  int64  `json:"cols"`
	Rows  int64  `json:"rows"`
	Data  string `json:"data,omitempty"`  // escape sequences and text; "" = blank
	After int64  `json:"after,omitempty"` // the place: after how many bytes of the content, in UTF-8
	// Sizes are the later sizes of the terminal, in order: for each, the number of bytes
	// of the content, in UTF-8, before the change, then columns and rows.
	Sizes [][3]int64 `json:"sizes,omitempty"`
	// Truncated says that a part of the screen is unknown, or that output is missing in
	// the content. It stays true until the program clears the screen.
	Truncated bool `json:"truncated,omitempty"`
}

// DecodeScreen decodes the value of ScreenKey, which comes from outside. It returns nil
// if there is none, or if it is invalid or exceeds a bound.
func DecodeScreen(raw []byte) *Screen {
	if len(raw) == 0 || len(raw) > 6*MaxScreen+64*MaxScreenSizes {
		return nil
	}
	var s Screen
	if json.Unmarshal(raw, &s) != nil || !s.valid() {
		return nil
	}
	return &s
}

func (s *Screen) valid() bool {
	fits := func(cols, rows int64) bool { return checkSize("", cols) == nil && checkSize("", rows) == nil }
	if !fits(s.Cols, s.Rows) || len(s.Data) > MaxScreen || len(s.Sizes) > MaxScreenSizes || !utf8.ValidString(s.Data) {
		return false
	}
	last := s.After
	if last < 0 {
		return false
	}
	for _, z := range s.Sizes {
		if z[0] < last || !fits(z[1], z[2]) {
			return false
		}
		last = z[0]
	}
	return true
}

// At returns a copy of the screen with its place after so many bytes of content, and
// without Sizes.
func (s *Screen) At(after int64) *Screen {
	next := *s
	next.After, next.Sizes = after, nil
	return &next
}

// Resized returns a copy of the screen for a terminal that gets another size after so
// many bytes of content. If Sizes is full, the copy drops the earlier sizes and is
// Truncated. nil stays nil.
func (s *Screen) Resized(after, cols, rows int64) *Screen {
	if s == nil {
		return nil
	}
	next := *s
	if len(s.Sizes) >= MaxScreenSizes {
		next.Sizes, next.Truncated = nil, true
	}
	next.Sizes = append(next.Sizes[:len(next.Sizes):len(next.Sizes)], [3]int64{after, cols, rows})
	return &next
}
