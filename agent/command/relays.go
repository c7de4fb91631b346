package command

import "strings"

// openTar reads the options of tar, also the old form without a dash (tar cIf PROGRAM
// FILE), in which each letter with a value takes the next word.
func openTar(r *reader, c Command, in input) bool {
	p := programs()["tar"]
	dashed := Command{Words: p.dashed(c.Words)}
	before := len(r.out.Findings)
	outer := p.open(r, dashed, in)
	for i := range r.out.Findings[before:] { // show the command as it was written
		if f := &r.out.Findings[before+i]; len(f.Command.Words) > 0 && &f.Command.Words[0] == &dashed.Words[0] {
			*f = Finding{f.Kind, brief(c.String()), c}
		}
	}
	met, _ := p.split(dashed.Words[1:])
	_, extracts := valueOf(met, "x", "extract", "get")
	if to, ok := valueOf(met, "C", "directory"); ok && extracts {
		(&effect{reader: r, of: c}).writes(to)
	}
	if _, anywhere := valueOf(met, "P", "absolute-names"); anywhere && extracts {
		r.out.findIn(Option, c)
	}
	return outer
}

// dashed returns the words with a dash before each letter of a first word that has
// none, and its value behind it.
func (p *program) dashed(words []Word) []Word {
	if len(words) < 2 || !words[1].Fixed || words[1].Text == "" || words[1].Text[0] == '-' {
		return words
	}
	out, rest := []Word{words[0]}, words[2:]
	for _, letter := range words[1].Text {
		out = append(out, Word{"-" + string(letter), true})
		if strings.ContainsRune(p.short, letter) && len(rest) > 0 {
			out, rest = append(out, rest[0]), rest[1:]
		}
	}
	return append(out, rest...)
}

// openRelay reads the addresses of socat and its like: some start programs, some open
// files.
func openRelay(r *reader, c Command, _ input) bool {
	for _, w := range c.Words[1:] {
		if isAddress(w.Text) {
			r.out.findIn(InlineCode, c)
		}
		for part := range strings.SplitSeq(w.Text, "!!") {
			kind, rest, _ := strings.Cut(part, ":")
			switch strings.ToLower(kind) {
			case "open", "create", "creat", "gopen", "file", "writefile", "appendfile":
				path, how, _ := strings.Cut(rest, ",")
				if !strings.Contains(how, "rdonly") {
					(&effect{reader: r, of: c}).writes(Word{path, w.Fixed})
				}
			}
		}
	}
	return false
}

// openParallel reads the command of parallel, or the lines that it runs where it is
// given no command: operands behind ":::", or its input.
func openParallel(r *reader, c Command, in input) bool {
	p := programs()["parallel"]
	_, rest := p.split(c.Words[1:])
	for _, w := range rest {
		if strings.Contains(w.Text, "{=") { // code in perl
			r.out.findIn(InlineCode, c)
		}
	}
	if len(rest) > 0 && !strings.HasPrefix(rest[0].Text, ":::") {
		if strings.HasPrefix(rest[0].Text, "{") { // the input names the program
			r.out.findIn(Dynamic, c)
		}
		if first, _, _ := strings.Cut(rest[0].Text, " "); shellNamed(baseName(first)) != "" { // which gets more words
			r.out.findIn(InlineCode, c)
		}
		return p.open(r, c, in)
	}
	lines := len(rest) > 0 && rest[0].Text == ":::"
	if !lines {
		r.out.findIn(InlineCode, c)
		return false
	}
	for _, w := range rest[1:] {
		r.lineIn(w, input{})
	}
	p.open(r, Command{Words: c.Words[:len(c.Words)-len(rest)]}, in) // its options
	return true
}
