package command

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// input is where a command's standard input comes from.
type input struct {
	pipe bool // another command
	file bool // a file
	// text is a here-document or -string.
	text *Word
}

// fed reports whether a program without arguments would read its code there.
func (in input) fed() bool { return in.pipe || in.file || in.text != nil }

// reader fills one Reading. It is used by one goroutine.
type reader struct {
	out   *Reading
	text  string // the line that is being read
	depth int    // of commands behind commands
	full  bool   // maxCommands is reached
	apart bool   // see Command.Apart
	// evaluates says that the line has arithmetic, in which text that looks like a[$(b)]
	// runs b; hides is such a text, "" for none.
	evaluates bool
	hides     string
	read      []string // names of variables that got data of files or commands
}

// deeper runs f one level down, unless that is too deep.
func (r *reader) deeper(what string, f func()) {
	if r.depth >= maxDepth {
		r.out.find(Unparsed, "too many nested commands: "+what)
		return
	}
	r.depth++
	f()
	r.depth--
}

// line reads the text that a shell would run.
func (r *reader) line(text string, in input) {
	if len(text) > maxLine {
		r.out.find(Unparsed, "the line is too long")
		return
	}
	if strings.ContainsAny(text, "\x00\r") { // the parser and shells read these differently
		r.out.find(Unparsed, "the line has a NUL byte or a carriage return")
		return
	}
	if !utf8.ValidString(text) { // a word may be another one in the locale of the shell
		r.out.find(Unparsed, "the line is not UTF-8")
		return
	}
	r.out.Lines++
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		r.out.find(Unparsed, parseProblem(err))
		return
	}
	if !commentsStand(file, text) {
		r.out.find(Unparsed, "a comment begins within a word")
		return
	}
	outer := r.text
	r.text = text
	r.node(file, in)
	if r.evaluates && r.hides != "" {
		r.out.find(Eval, r.hides)
	}
	r.text = outer
}

// commentsStand reports whether each comment begins where a word could begin. In a
// subshell mvdan.cc/sh 3.14.1 takes a # directly behind a closing backquote or
// parenthesis for the beginning of a comment, which hides commands that shells run.
func commentsStand(file *syntax.File, text string) bool {
	stand := true
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok {
			at := c.Hash.Offset()
			stand = stand && (at == 0 || at <= uint(len(text)) && strings.IndexByte(" \t\n;&|(", text[at-1]) >= 0)
		}
		return stand
	})
	return stand
}

func parseProblem(err error) string {
	if p, ok := errors.AsType[syntax.ParseError](err); ok {
		return p.Text
	}
	return err.Error()
}

// node reads everything below n. Commands in it have the input in, unless something
// nearer gives them another.
func (r *reader) node(n syntax.Node, in input) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			r.stmt(n, in)
			return false
		case *syntax.CmdSubst:
			r.out.find(Substitution, r.source(n))
		case *syntax.ProcSubst:
			r.out.find(Substitution, r.source(n))
		case *syntax.DeclClause:
			r.sets(n.Args)
			for _, a := range n.Args { // local -i x='a[$(b)]', declare -n x='a[$(b)]', export 'a[$(b)]=1'
				if a.Naked && a.Value != nil {
					text := r.fixed(a.Value).Text
					r.evaluates = r.evaluates || strings.HasPrefix(text, "-") && strings.ContainsAny(text, "in") || strings.Contains(text, "[")
				}
			}
		case *syntax.Word:
			r.hidden(r.fixed(n), false)
		case *syntax.Assign:
			r.hidden(r.fixed(n.Value), true)
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			r.evaluates = true
		case *syntax.BinaryTest:
			if slices.Contains(numberTests, n.Op) {
				r.evaluates = true
				r.numbers(n)
			}
		case *syntax.UnaryTest: // [[ -v a[$(b)] ]]
			r.evaluates = r.evaluates || n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar
		case *syntax.WordIter: // for X in …
			for _, w := range n.Items {
				r.setOther(n.Name.Value, r.fixed(w))
			}
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				r.setOther(n.Param.Value, r.fixed(n.Exp.Word))
			}
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word != nil && r.fixed(n.Exp.Word).Text == "P" {
				r.out.find(Eval, r.source(n))
			}
			r.evaluates = r.evaluates || n.Index != nil || n.Slice != nil || n.Excl
		case *syntax.ExtGlob: // of zsh: *(e:'…':), *(+name)
			if p := n.Pattern.Value; n.Op == syntax.GlobZeroOrMore && (strings.HasPrefix(p, "+") || len(p) > 1 && p[0] == 'e' && strings.IndexByte(":'\"{[(<|,", p[1]) >= 0) {
				r.out.find(Eval, r.source(n))
			}
		}
		return true
	})
}

// stmt reads a command with its redirections.
func (r *reader) stmt(s *syntax.Stmt, in input) {
	for _, redirect := range s.Redirs {
		in = r.redirect(redirect, in)
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		r.call(c, in)
	case *syntax.BinaryCmd:
		r.stmt(c.X, in)
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			in = input{pipe: true}
		}
		r.stmt(c.Y, in)
	case *syntax.CoprocClause:
		r.node(c, input{pipe: true})
	case *syntax.WhileClause, *syntax.ForClause: // in the next round, the end of the loop precedes its beginning
		r.later(func() { r.node(c, in) }, func() int { return len(r.out.Moves) })
	case *syntax.FuncDecl:
		r.later(func() { r.node(c, in) }, func() int { return anytime })
	default:
		r.node(c, in)
	}
}

// later calls read. All files that read finds count as written after at least as many
// moves as moves returns then.
func (r *reader) later(read func(), moves func() int) {
	writes, files := len(r.out.Writes), len(r.out.Files)
	read()
	for i := range r.out.Writes[writes:] {
		r.out.Writes[writes+i].Moves = max(r.out.Writes[writes+i].Moves, moves())
	}
	for i := range r.out.Files[files:] {
		r.out.Files[files+i].Moves = max(r.out.Files[files+i].Moves, moves())
	}
}

// lineLater reads a word that a shell will run as a line at any time.
func (r *reader) lineLater(w Word, in input) {
	r.later(func() { r.lineIn(w, in) }, func() int { return anytime })
}

// writes notes the target of a redirection.
func (r *reader) writes(w Word) {
	r.out.Writes = append(r.out.Writes, File{Name: w, Moves: len(r.out.Moves)})
}

// redirect notes a written file, and returns the input after it.
func (r *reader) redirect(d *syntax.Redirect, in input) input {
	for _, w := range []*syntax.Word{d.Word, d.Hdoc} {
		if w != nil {
			r.node(w, in)
		}
	}
	stdin := d.N == nil || d.N.Value == "0"
	switch d.Op {
	case syntax.RdrIn, syntax.DplIn:
		if stdin {
			return input{file: true}
		}
	case syntax.WordHdoc:
		text := r.fixed(d.Word)
		return input{text: &text}
	case syntax.Hdoc, syntax.DashHdoc:
		text := Word{Fixed: true}
		if d.Hdoc != nil {
			text = r.document(d.Hdoc)
		}
		return input{text: &text}
	case syntax.DplOut:
		if target := r.fixed(d.Word); !target.Fixed || strings.Trim(target.Text, "0123456789-") != "" {
			r.writes(target)
		}
	default: // >, >>, >|, <>, &>, &>> and any later additions
		r.writes(r.fixed(d.Word))
	}
	return in
}

// call reads a simple command.
func (r *reader) call(c *syntax.CallExpr, in input) {
	r.sets(c.Assigns)
	for _, a := range c.Assigns {
		r.node(a, in)
	}
	words := make([]Word, len(c.Args))
	for i, w := range c.Args {
		r.node(w, in)
		words[i] = r.fixed(w)
	}
	if len(words) > 0 && (slices.Contains(evaluators, words[0].Text) || slices.Contains(counters, words[0].Text) && !isNumber(words[1:])) {
		r.evaluates = true
	}
	if len(words) > 1 {
		r.reads(words[0].Text, words[1:])
	}
	if len(words) > maxWords {
		r.out.find(Unparsed, "too many words")
		words = words[:maxWords]
	}
	if len(words) > 0 {
		r.command(words, in)
	}
}

func (r *reader) sets(all []*syntax.Assign) {
	for _, a := range all {
		switch {
		case a.Name != nil:
			value := r.fixed(a.Value)
			r.evaluates = r.evaluates || slices.Contains(numbers, a.Name.Value)
			if a.Index != nil {
				r.evaluates = true
				if slices.Contains(zshTables, a.Name.Value) {
					r.lineLater(value, input{})
				}
			}
			r.out.Sets = append(r.out.Sets, Setting{a.Name.Value, value})
		case a.Value != nil && !r.fixed(a.Value).Fixed: // export $X
			r.out.find(Dynamic, r.source(a.Value))
		}
	}
}

// reads notes the variables that get data by a builtin.
func (r *reader) reads(builtin string, words []Word) {
	switch builtin {
	case "printf":
		if words[0].Text == "-v" && len(words) > 1 {
			r.setOther(words[1].Text, Word{Text: "…"})
		}
	case "read", "mapfile", "readarray":
		for _, w := range words {
			r.setOther(w.Text, Word{Text: "…"})
			r.read = append(r.read, w.Text)
		}
	}
}

// setOther notes a variable that gets its value otherwise than by an assignment. Only
// names in capitals are noted: they are those of programs.
func (r *reader) setOther(name string, value Word) {
	if name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" {
		r.out.Sets = append(r.out.Sets, Setting{name, value})
	}
}

// evaluators are builtins that evaluate numbers, or subscripts in names, that are given
// as text. Not all shells have all of them.
var evaluators = []string{"read", "printf", "unset", "test", "[", "let", "mapfile", "readarray", "getopts", "wait", "declare", "typeset", "local", "export", "readonly",
	"integer", "float"}

// counters are builtins whose operand is arithmetic in zsh, ksh and mksh.
var counters = []string{"shift", "exit", "return", "break", "continue"}

// isNumber reports whether the words are none, or a number.
func isNumber(words []Word) bool {
	return len(words) == 0 || words[0].Fixed && strings.Trim(words[0].Text, "0123456789") == ""
}

// numberTests are operators of [[ whose operands are arithmetic.
var numberTests = []syntax.BinTestOperator{syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr}

// numbers are variables of shells to which an assignment is arithmetic.
var numbers = []string{"RANDOM", "SRANDOM", "SECONDS", "OPTIND", "LINENO", "HISTCMD", "BASHPID", "PPID", "EUID", "UID", "COLUMNS", "LINES", "HISTSIZE", "SAVEHIST", "TMOUT", "EPOCHSECONDS"}

// zshTables are arrays of zsh's whose values are run.
var zshTables = []string{"functions", "dis_functions", "aliases", "galiases", "saliases", "dis_aliases", "commands", "BASH_ALIASES", "BASH_CMDS"}

// numbers notes data that [[ evaluates as arithmetic.
func (r *reader) numbers(n *syntax.BinaryTest) {
	for _, side := range []syntax.TestExpr{n.X, n.Y} {
		w, ok := side.(*syntax.Word)
		if !ok {
			continue
		}
		name := strings.Trim(r.source(w), "\"${}")
		if slices.Contains(r.read, name) {
			r.out.find(InlineCode, "[[ evaluates "+name+", which was read,")
		}
	}
}

// hidden notes text that runs a command if a shell evaluates it. Of the value of a
// variable it may be a part: the "a[" may be elsewhere.
func (r *reader) hidden(w Word, assigned bool) {
	if w.Fixed && (assigned || strings.Contains(w.Text, "[")) && (strings.Contains(w.Text, "$(") || strings.Contains(w.Text, "`")) {
		r.hides = w.Text
	}
}

// source is the node's text.
func (r *reader) source(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || to > uint(len(r.text)) {
		return "…"
	}
	return r.text[from:to]
}

// fixed returns the word's value, if the text alone decides it.
func (r *reader) fixed(w *syntax.Word) Word {
	if w == nil {
		return Word{Fixed: true}
	}
	var b, bare strings.Builder
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			bare.WriteString(unescaped(lit.Value))
		}
		if !value(&b, part, false) {
			return Word{Text: r.source(w)}
		}
	}
	if expands(bare.String()) {
		return Word{Text: r.source(w)}
	}
	return Word{b.String(), true}
}

// expands reports whether unquoted text stands for names of files or for several words.
func expands(s string) bool {
	if strings.ContainsAny(s, "*?") {
		return true
	}
	if open := strings.IndexByte(s, '['); open >= 0 && strings.IndexByte(s[open:], ']') > 0 { // else it is one: the command [
		return true
	}
	open := strings.IndexByte(s, '{')
	return open >= 0 && strings.IndexByte(s[open:], '}') > 0 && (strings.Contains(s[open:], ",") || strings.Contains(s[open:], ".."))
}

// document is the text of a here-document.
func (r *reader) document(w *syntax.Word) Word {
	var b strings.Builder
	for _, part := range w.Parts {
		if !value(&b, part, true) {
			return Word{Text: r.source(w)}
		}
	}
	return Word{b.String(), true}
}

// value appends the value of a part of a word. It returns false if the text alone does
// not decide it.
func value(b *strings.Builder, part syntax.WordPart, quoted bool) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		b.WriteString(unquote(p.Value, quoted))
	case *syntax.SglQuoted:
		if !p.Dollar {
			b.WriteString(p.Value)
			return true
		}
		s, _, err := expand.Format(nil, p.Value, nil)
		if err != nil {
			return false
		}
		s, _, _ = strings.Cut(s, "\x00")
		b.WriteString(s)
	case *syntax.DblQuoted:
		if p.Dollar {
			return false // a translation
		}
		for _, inner := range p.Parts {
			if !value(b, inner, true) {
				return false
			}
		}
	default:
		return false
	}
	return true
}

// unquote takes away backslashes as the shell does.
func unquote(s string, quoted bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) || quoted && !strings.ContainsRune("$`\"\\\n", rune(s[i+1])) {
			b.WriteByte(s[i])
			continue
		}
		if i++; s[i] != '\n' {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// unescaped is s without backslashes and the characters that they protect.
func unescaped(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found || after == "" {
			return b.String()
		}
		s = after[1:]
	}
}
