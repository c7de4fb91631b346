package progentry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// document is a JSON file of an editor: an object, which may have comments and trailing
// commas. Its nodes keep all white space and comments, and share no memory with text.
type document struct {
	text []byte
	root hujson.Value
}

// parse reads a text that consists of one object.
func parse(text []byte) (*document, error) {
	root, err := hujson.Parse(slices.Concat(text, []byte("\n"))) // it ends the last comment
	if err != nil {
		return nil, fmt.Errorf("the file is not valid JSON: %s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if root.Value.Kind() != '{' {
		return nil, errors.New("the file is not valid JSON: an object was expected")
	}
	return &document{text, root}, nil
}

// pack returns the text of the document.
func (d *document) pack() []byte { return bytes.TrimSuffix(d.root.Pack(), []byte("\n")) }

// find returns the index of an object's member, -1 if there is none. The last member with
// the name counts.
func find(o *hujson.Object, name string) int {
	for i, m := range slices.Backward(o.Members) {
		if m.Name.Value.(hujson.Literal).String() == name {
			return i
		}
	}
	return -1
}

// insert adds a member at the end of an object. value is JSON, indented by tabs as if it
// began at the start of a line.
func (d *document) insert(object *hujson.Value, name, value string) {
	o := object.Value.(*hujson.Object)
	outer, step := d.indentation(object)
	end := lineEnd(d.text)
	value = strings.ReplaceAll(strings.ReplaceAll(value, "\t", step), "\n", end+outer+step)
	m := hujson.ObjectMember{
		Name:  hujson.Value{Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: hujson.Literal(value)}, // packed as it is
	}
	if n := len(o.Members); n > 0 {
		if o.Members[n-1].Value.AfterExtra != nil { // there is a comma at the end
			m.Value.AfterExtra = hujson.Extra{}
		}
		n := commentLen(o.AfterExtra)
		m.Name.BeforeExtra, o.AfterExtra = o.AfterExtra[:n:n], o.AfterExtra[n:]
	}
	m.Name.BeforeExtra = append(m.Name.BeforeExtra, end+outer+step...)
	if !bytes.Contains(o.AfterExtra, []byte("\n")) {
		o.AfterExtra = slices.Concat([]byte(end+outer), o.AfterExtra)
	}
	o.Members = append(o.Members, m)
}

// commentLen returns the length of the first line if it is a comment, otherwise 0.
func commentLen(text []byte) int {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	rest := bytes.TrimSpace(line)
	if bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")) && bytes.HasSuffix(rest, []byte("*/")) {
		return len(bytes.TrimRight(line, "\r"))
	}
	return 0
}

// indentation returns the indentation of the line with an object's brace, and the
// additional indentation of its members.
func (d *document) indentation(object *hujson.Value) (outer, step string) {
	look := object
	if len(look.Value.(*hujson.Object).Members) == 0 {
		look = &d.root
	}
	step = "  "
	if members := look.Value.(*hujson.Object).Members; len(members) > 0 {
		base, own := d.blanks(look.StartOffset), d.blanks(members[0].Name.StartOffset)
		if strings.HasPrefix(own, base) && len(own) > len(base) {
			step = own[len(base):]
		}
	}
	return d.blanks(object.StartOffset), step
}

// blanks returns the indentation of the line that contains the position at.
func (d *document) blanks(at int) string {
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// lineEnd returns CR LF if the text has one, otherwise LF.
func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// remove takes a member out of an object, with its line, but not the comments before it.
func remove(o *hujson.Object, i int) {
	m := o.Members[i]
	kept := bytes.TrimRight(m.Name.BeforeExtra, " \t\r\n")
	next := &o.AfterExtra
	if i+1 < len(o.Members) {
		next = &o.Members[i+1].Name.BeforeExtra
	} else if i > 0 {
		last := &o.Members[i-1].Value
		if m.Value.AfterExtra == nil { // no comma at the end: the one before goes
			kept, last.AfterExtra = slices.Concat(last.AfterExtra, kept), nil
		} else if last.AfterExtra == nil {
			last.AfterExtra = hujson.Extra{}
		}
	}
	*next = slices.Concat(kept, *next)
	o.Members = slices.Delete(o.Members, i, i+1)
	if len(o.Members) == 0 && len(bytes.TrimSpace(o.AfterExtra)) == 0 {
		o.AfterExtra = nil
	}
}

// plain returns a text decoded, without its comments.
func plain(text []byte) (all map[string]any, err error) {
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	d.root.Standardize()
	if err := json.Unmarshal(d.root.Pack(), &all); err != nil {
		return nil, fmt.Errorf("the file is not valid JSON: %w", err)
	}
	return all, nil
}

// SetMember returns a JSON text with the string value as the member of the whole object
// called name, or the text unchanged if it has that. Errors are those of Format.Add.
func SetMember(text []byte, name, value string) ([]byte, error) {
	return behindMark(text, func(text []byte) ([]byte, error) {
		if len(bytes.TrimSpace(text)) == 0 {
			text = []byte("{\n}\n")
		}
		all, err := plain(text)
		if err != nil || all[name] == value {
			return text, err
		}
		if _, ok := all[name]; ok {
			return nil, ErrOther
		}
		d, err := parse(text)
		if err != nil {
			return nil, err
		}
		d.insert(&d.root, name, quote(value))
		out := d.pack()
		return out, onlyMember(text, out, name)
	})
}

// RemoveMember returns a JSON text without that member, or the text unchanged if the
// member is not there or has another value.
func RemoveMember(text []byte, name, value string) ([]byte, error) {
	return behindMark(text, func(text []byte) ([]byte, error) {
		if len(bytes.TrimSpace(text)) == 0 {
			return text, nil
		}
		all, err := plain(text)
		if err != nil || all[name] != value {
			return text, err
		}
		d, err := parse(text)
		if err != nil {
			return nil, err
		}
		top := d.root.Value.(*hujson.Object)
		remove(top, find(top, name))
		out := d.pack()
		return out, onlyMember(out, text, name)
	})
}

// onlyMember returns nil if the two texts differ only in the member called name, which
// with has.
func onlyMember(without, with []byte, name string) error {
	a, err := plain(without)
	if err != nil {
		return errUnsafe
	}
	b, err := plain(with)
	if err != nil || b[name] == nil {
		return errUnsafe
	}
	delete(b, name)
	if !reflect.DeepEqual(a, b) {
		return errUnsafe
	}
	return nil
}
