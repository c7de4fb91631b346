package problems

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

//go:embed matchers/*.json
var files embed.FS

// order is that in which the files' matchers are tried: formats of many tools come last.
var order = []string{"ports", "compiled", "jvm", "scripted", "javascript", "success", "generic"}

// known are the matchers of the directory.
var known = sync.OnceValue(func() []Matcher {
	var all []Matcher
	for _, name := range order {
		p, err := files.ReadFile("matchers/" + name + ".json")
		if err != nil {
			panic(err) // it is part of the program
		}
		var f struct {
			Matchers []Matcher `json:"matchers"`
		}
		if err := json.Unmarshal(p, &f); err != nil {
			panic(fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, f.Matchers...)
	}
	return all
})

var builtin = sync.OnceValue(func() *Set { return withKnown(nil, nil) })

// withKnown returns matchers that are compiled, and the known ones after them.
func withKnown(own []Matcher, compiled []func() *matcher) *Set {
	for _, m := range known() {
		compiled = append(compiled, sync.OnceValue(func() *matcher {
			c, err := m.compile()
			if err != nil {
				panic(err) // a test compiles them
			}
			return c
		}))
	}
	return newSet(slices.Concat(own, known()), compiled)
}

// Builtin returns the matchers of known tools.
func Builtin() *Set { return builtin() }

// With returns the matchers of known tools after others of the person's own, which win.
func With(own []Matcher) (*Set, error) {
	if len(own) == 0 {
		return Builtin(), nil
	}
	if most := maxMatchers - len(known()); len(own) > most {
		return nil, fmt.Errorf("%d problem matchers of your own, at most %d", len(own), most)
	}
	s, err := Compile(own...)
	if err != nil {
		return nil, err
	}
	return withKnown(own, s.compiled), nil
}
