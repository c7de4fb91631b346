package config

import "reflect"

// Conceal replaces each text that the person chose freely by mark, for a report that
// others read: commands, variables, directories, patterns, names. Numbers, sizes, times,
// words from a fixed set and default values stay.
func (c *Config) Conceal(mark string) {
	d := Default()
	conceal(reflect.ValueOf(c).Elem(), reflect.ValueOf(&d).Elem(), mark)
}

func conceal(v, def reflect.Value, mark string) {
	for _, f := range fieldsOf(v.Type()) {
		x, y := v.Field(f.index), def.Field(f.index)
		switch t := x.Type(); {
		case t.Kind() == reflect.Struct:
			conceal(x, y, mark)
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			for i := range x.Len() {
				conceal(x.Index(i), reflect.Zero(t.Elem()), mark)
			}
		case f.words != nil || reflect.DeepEqual(x.Interface(), y.Interface()):
		case t.Kind() == reflect.String:
			x.SetString(mark)
		case t.Kind() == reflect.Slice:
			hidden := reflect.MakeSlice(t, x.Len(), x.Len())
			for i := range x.Len() {
				hidden.Index(i).SetString(mark)
			}
			x.Set(hidden)
		}
	}
}
