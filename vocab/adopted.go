package vocab

// Adopted is the pane of another program, such as tmux, that a terminal only reads.
type Adopted struct {
	From    string `json:"from"`            // as tether adopt takes it, such as tmux:%3
	Program string `json:"program"`         // in which the pane is
	Exact   bool   `json:"exact"`           // every byte is read; else repeated pictures
	Types   bool   `json:"types,omitempty"` // the person may type there
	Rule    string `json:"rule,omitempty"`  // the rule's match; absent if the person has adopted it
	Pid     int    `json:"pid,omitempty"`   // of the pane's first program; 0 if it is not known
}

// Marks of adopted terminals in lists.
const (
	AdoptedWord = "adopted"
	PictureWord = "repeated picture" // no offsets are promised for it
)

// Picture returns PictureWord if not every byte is read, else "".
func (a *Adopted) Picture() string {
	if a == nil || a.Exact {
		return ""
	}
	return PictureWord
}

// Label says for a line of a list that a terminal is adopted, and whether it is a
// repeated picture; "" for nil.
func (a *Adopted) Label() string {
	switch {
	case a == nil:
		return ""
	case a.Exact:
		return AdoptedWord + " from " + a.From
	}
	return AdoptedWord + " from " + a.From + ", " + PictureWord
}
