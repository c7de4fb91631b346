package fetch

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// IsText reports whether the body is text, whatever the server calls it: what is text can
// hold secrets, which are masked in text alone.
func (p *Page) IsText() bool {
	return strings.HasPrefix(p.Type, "text/") || utf8.Valid(whole(p.Body)) && !bytes.ContainsRune(p.Body, 0)
}

// IsHTML reports whether the body is a page of HTML.
func (p *Page) IsHTML() bool { return p.Type == "text/html" || p.Type == "application/xhtml+xml" }

// Text returns the body as UTF-8.
func (p *Page) Text() string {
	return strings.ToValidUTF8(string(whole(p.Body)), string(utf8.RuneError))
}

// whole removes a character that was cut at the end.
func whole(p []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if c := p[len(p)-n:]; utf8.RuneStart(c[0]) {
			if !utf8.FullRune(c) {
				return p[:len(p)-n]
			}
			break
		}
	}
	return p
}

// Readable returns HTML reduced to its text, with headings, links and fields of forms.
func (p *Page) Readable() string {
	doc, err := html.ParseWithOptions(strings.NewReader(p.Text()), html.ParseOptionEnableScripting(false))
	if err != nil { // too deep, for example
		return p.Text()
	}
	r := &reader{}
	r.node(doc, false)
	return strings.TrimSpace(r.b.String()) + "\n"
}

// reader reduces a document.
type reader struct {
	b     strings.Builder
	lines int  // line ends at the end of b; more than 2 say nothing
	blank bool // a blank is due before the next word
}

var (
	skipped  = []atom.Atom{atom.Script, atom.Style, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Link, atom.Meta}
	headings = []atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}
	blocks   = []atom.Atom{atom.P, atom.Div, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Nav, atom.Main, atom.Aside, atom.Ul, atom.Ol, atom.Li, atom.Table, atom.Tr, atom.Pre, atom.Form, atom.Fieldset, atom.Blockquote, atom.Title, atom.Dl, atom.Dt, atom.Dd, atom.Figure, atom.Details, atom.Summary, atom.Hr}
)

func (r *reader) node(n *html.Node, pre bool) {
	switch {
	case n.Type == html.TextNode:
		r.text(n.Data, pre)
		return
	case n.Type == html.ElementNode && (slices.Contains(skipped, n.DataAtom) || hasAttr(n, "hidden")):
		return
	}
	level := slices.Index(headings, n.DataAtom) + 1
	block := level > 0 || slices.Contains(blocks, n.DataAtom)
	if block {
		r.newline()
	}
	switch {
	case level > 0:
		r.word(strings.Repeat("#", level) + " ")
	case n.DataAtom == atom.Title:
		r.word("title: ")
	case n.DataAtom == atom.Li:
		r.word("- ")
	case n.DataAtom == atom.Br:
		r.newline()
	case n.DataAtom == atom.Td || n.DataAtom == atom.Th:
		r.part("|")
	case n.DataAtom == atom.A && attr(n, "href") != "":
		r.word("[")
	case n.DataAtom == atom.Img:
		r.part("[image " + attr(n, "alt") + "]")
	case n.DataAtom == atom.Form:
		r.word("[form " + strings.ToLower(attr(n, "method")) + " " + attr(n, "action") + "]")
		r.newline()
	case n.DataAtom == atom.Input, n.DataAtom == atom.Select, n.DataAtom == atom.Textarea, n.DataAtom == atom.Button:
		r.field(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		r.node(c, pre || n.DataAtom == atom.Pre || n.DataAtom == atom.Textarea)
	}
	if n.DataAtom == atom.A && attr(n, "href") != "" {
		r.blank = false
		r.word("](" + attr(n, "href") + ")")
	}
	switch n.DataAtom {
	case atom.Button:
		r.word("]")
		r.blank = true
	case atom.Option:
		r.blank = true
	}
	if block {
		r.newline()
	}
}

// field writes a field of a form. What is in a password's field stays there.
func (r *reader) field(n *html.Node) {
	kind := attr(n, "type")
	if n.DataAtom == atom.Button {
		r.blank = true
		r.word("[button ")
		return
	}
	if n.DataAtom != atom.Input {
		kind = n.Data
	}
	text := "[field " + strings.TrimSpace(kind+" "+attr(n, "name"))
	if v := attr(n, "value"); v != "" && kind != "password" && kind != "hidden" {
		text += "=" + v
	}
	if hasAttr(n, "checked") {
		text += " checked"
	}
	r.part(text + "]")
}

// part writes what stands apart from the words around it.
func (r *reader) part(s string) {
	r.blank = true
	r.word(s)
	r.blank = true
}

func (r *reader) text(s string, pre bool) {
	if pre {
		r.put(s)
		return
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		r.blank = r.blank || s != ""
		return
	}
	r.blank = r.blank || strings.TrimLeft(s, " \t\r\n") != s
	r.word(strings.Join(words, " "))
	r.blank = strings.TrimRight(s, " \t\r\n") != s
}

func (r *reader) word(s string) {
	if r.blank && r.lines == 0 && r.b.Len() > 0 {
		r.put(" ")
	}
	r.blank = false
	r.put(s)
}

func (r *reader) newline() {
	r.blank = false
	if r.lines == 0 && r.b.Len() > 0 {
		r.put("\n")
	}
}

func (r *reader) put(s string) {
	if s == "" {
		return
	}
	r.b.WriteString(s)
	r.lines = len(s) - len(strings.TrimRight(s, "\n"))
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return strings.Join(strings.Fields(a.Val), " ")
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}
