package problems

import (
	"fmt"
	"strings"
)

// Severity says how bad a problem is.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Problem is one complaint of a tool. Nothing in it comes from outside the lines that its
// matcher matched, except Taken.
type Problem struct {
	Tool     string   `json:"tool"`                // the matcher's owner
	File     string   `json:"file,omitempty"`      // absolute where its directory is known, otherwise as the tool named it; "" if it named none
	Line     int      `json:"line,omitempty"`      // from 1; 0 if the tool named none
	Column   int      `json:"column,omitempty"`    // as the tool counts; 0 if it named none
	EndLine  int      `json:"endLine,omitempty"`   // 0 if the tool named none
	EndCol   int      `json:"endColumn,omitempty"` // 0 if the tool named none
	Package  string   `json:"package,omitempty"`   // the runner's prefix of these lines
	Severity Severity `json:"severity"`
	Code     string   `json:"code,omitempty"`
	Href     string   `json:"href,omitempty"` // the page about Code to which the tool links it
	Message  string   `json:"message"`
	First    int64    `json:"first"` // offset of the lines that were matched first
	Last     int64    `json:"last"`  // offset after the last matched lines
	Count    int      `json:"count"` // how often the same was printed
	// Taken says who has the port that was not free. It is set by who knows that, not by
	// a Tracker.
	Taken string `json:"taken,omitempty"`

	command string // the command line that printed it
	weak    bool   // see Matcher.Weak
	loose   bool   // File is a name within a package that is not known yet, see Matcher.Package
}

// Place returns where a problem is, FILE:LINE:COLUMN as far as it is known; "" without a
// file.
func Place(file string, line, column int) string {
	switch {
	case file == "" || line <= 0:
		return file
	case column <= 0:
		return fmt.Sprintf("%s:%d", file, line)
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}

// Bounds of a problem's fields, in bytes.
const (
	maxFileName = 1000
	maxMessage  = 1000
	maxCode     = 100
)

// key identifies a problem: equal problems have the same key.
type key struct {
	tool, file, code, message, pkg string
	severity                       Severity
	line, column                   int
}

func (p *Problem) key() key {
	return key{p.Tool, p.File, p.Code, p.Message, p.Package, p.Severity, p.Line, p.Column}
}

// severities are the words that tools use.
var severities = map[string]Severity{
	"error": Error, "err": Error, "e": Error, "f": Error, "fatal": Error, "fatal error": Error, "failure": Error, "panic": Error,
	"internal compiler error": Error, "parse error": Error, "✖": Error, "×": Error, "⚠": Warning, "!": Warning, "ℹ": Info,
	"warning": Warning, "warn": Warning, "w": Warning, "c": Warning, "r": Warning, "deprecated": Warning, "notice": Info,
	"info": Info, "information": Info, "note": Info, "hint": Info, "help": Info, "i": Info, "n": Info, "suggestion": Info, "message": Info,
}

// severityOf returns the severity that a tool's word stands for, or otherwise if the word
// is unknown.
func severityOf(word string, otherwise Severity) Severity {
	if s, ok := severities[strings.ToLower(strings.TrimSpace(word))]; ok {
		return s
	}
	return otherwise
}
