package screen

// Render is the text of p for a reader who has no terminal: as one would see
// it that is cols wide.
func Render(p []byte, cols, rows int) string {
	s := New(cols, rows)
	s.Write(p)
	text, _ := s.History()
	return text
}
