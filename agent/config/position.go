package config

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// positions are the lines, from 1, on which keys stand. An element of a list of tables is
// named by its number from 0: "policy.rules.0.effect".
type positions map[string]int

// of returns the line of a key, or of its container: an element of a list has the line of
// the list, a missing key that of its table. 0 if no part of it exists.
func (found positions) of(path []string) int {
	for n := len(path); n > 0; n-- {
		if line := found[join(path[:n])]; line > 0 {
			return line
		}
	}
	return 0
}

// positionsIn finds the keys of a valid document.
func positionsIn(data []byte) positions {
	found := positions{}
	lists := map[string]int{} // how many elements each list of tables has so far
	var p unstable.Parser
	p.Reset(data)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			keys, offset := keyOf(e)
			table = within(nil, keys, lists)
			if e.Kind == unstable.ArrayTable {
				table = within(nil, keys[:len(keys)-1], lists)
				table = append(table, keys[len(keys)-1])
				name := join(table)
				found.note(name, data, offset)
				table = append(table, strconv.Itoa(lists[name]))
				lists[name]++
			}
			found.note(join(table), data, offset)
		case unstable.KeyValue:
			found.keyValue(table, e, data)
		}
	}
	return found
}

// keyValue notes a key and those in an inline table that is its value.
func (found positions) keyValue(table []string, e *unstable.Node, data []byte) {
	keys, offset := keyOf(e)
	path := append(append([]string(nil), table...), keys...)
	for n := len(table) + 1; n <= len(path); n++ {
		found.note(join(path[:n]), data, offset)
	}
	found.value(path, e.Value(), data)
}

func (found positions) value(path []string, v *unstable.Node, data []byte) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			found.keyValue(path, it.Node(), data)
		}
	case unstable.Array:
		n := 0
		for it := v.Children(); it.Next(); n++ {
			if it.Node().Kind == unstable.InlineTable {
				found.value(append(path[:len(path):len(path)], strconv.Itoa(n)), it.Node(), data)
			}
		}
	}
}

// within puts into a path which element of each list of tables is meant: the last one so
// far.
func within(path, keys []string, lists map[string]int) []string {
	for _, k := range keys {
		path = append(path, k)
		if n := lists[join(path)]; n > 0 {
			path = append(path, strconv.Itoa(n-1))
		}
	}
	return path
}

// keyOf returns the parts of a key and the offset at which the first of them begins.
func keyOf(e *unstable.Node) (keys []string, offset int) {
	for it := e.Key(); it.Next(); {
		if len(keys) == 0 {
			offset = int(it.Node().Raw.Offset)
		}
		keys = append(keys, string(it.Node().Data))
	}
	return keys, offset
}

// note keeps the first line of a name.
func (found positions) note(name string, data []byte, offset int) {
	if _, ok := found[name]; !ok {
		found[name] = bytes.Count(data[:offset], []byte{'\n'}) + 1
	}
}

func join(path []string) string { return strings.Join(path, ".") }
