package problems

import (
	"embed"
	"encoding/json"
	"fmt"
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

var builtin = sync.OnceValue(func() *Set {
	s, err := Compile(known()...)
	if err != nil {
		panic(err) // a test compiles them
	}
	return s
})

// Builtin returns the matchers of known tools.
func Builtin() *Set { return builtin() }

// With returns the matchers of known tools after others of the person's own, which win.
func With(own []Matcher) (*Set, error) {
	if len(own) == 0 {
		return Builtin(), nil
	}
	if _, err := Compile(own...); err != nil {
		return nil, err // with the number that the person knows
	}
	return Compile(append(append([]Matcher{}, own...), known()...)...)
}
