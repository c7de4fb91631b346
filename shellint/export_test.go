package shellint

// Memory is the number of bytes that the Scanner holds for payloads.
func (s *Scanner) Memory() int { return cap(s.body.text) }

// MaxArena is the bound of Memory between sequences.
const MaxArena = maxArena
