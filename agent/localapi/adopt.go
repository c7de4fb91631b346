package localapi

import "tether/vocab"

// AdoptRequest makes a pane of another program a terminal.
type AdoptRequest struct {
	Pane    string `json:"pane"` // as Pane.Pane has it, such as tmux:%3
	Name    string `json:"name,omitempty"`
	Private bool   `json:"private,omitempty"` // as in SpawnRequest
	Type    bool   `json:"type,omitempty"`    // the person may type there
}

// Pane is a pane of another program, such as tmux, that runs now.
type Pane struct {
	Pane      string      `json:"pane"`    // for AdoptRequest
	Program   string      `json:"program"` // in which it is: tmux, …
	Title     string      `json:"title"`
	Command   string      `json:"command"` // of the program in its foreground
	Directory string      `json:"directory,omitempty"`
	Pid       int         `json:"pid,omitempty"` // of its first program
	Cols      int         `json:"cols"`
	Rows      int         `json:"rows"`
	Exact     bool        `json:"exact"` // every byte is read; else repeated pictures
	Why       string      `json:"why,omitempty"`
	Listening []Listening `json:"listening,omitempty"` // where the system tells
	Terminal  string      `json:"terminal,omitempty"`
	Name      string      `json:"name,omitempty"`
}

// PaneList is the answer to a list of panes.
type PaneList struct {
	SchemaVersion int      `json:"schema_version"`
	Panes         []Pane   `json:"panes"`
	Trouble       []string `json:"trouble,omitempty"` // what could not be listed, and why
	// Rules are the rules of the configuration that adopt panes by themselves.
	Rules []AdoptRule `json:"rules,omitempty"`
}

// AdoptedPane is a running terminal that reads a pane.
type AdoptedPane struct {
	Terminal string `json:"terminal"` // id
	Name     string `json:"name"`
	vocab.Adopted
}

// AdoptRule is a rule of the configuration that adopts panes by itself.
type AdoptRule struct {
	Program string `json:"program"`
	Match   string `json:"match"` // RE2, of the command line
}
