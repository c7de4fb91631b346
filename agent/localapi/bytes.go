package localapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"tether/internal/jsonspan"
)

// Arguments, variables and directories of Unix may be any bytes, and those of Windows may
// have half of a surrogate pair, which Go represents as bytes that are not UTF-8. JSON
// cannot carry either, and package json would replace them without a word.

// byteField is a list of texts, with the field for the bytes of those that are not UTF-8.
type byteField struct {
	name  string // of an element, for people
	field string // in JSON
	text  *[]string
	bytes *map[int][]byte
}

// pack moves what is not UTF-8 into the fields for bytes. It returns the first such
// element in words, "" if there is none. The slices of texts stay as they are.
func pack(cwd *string, cwdBytes *[]byte, lists ...byteField) (what string) {
	for _, list := range lists {
		*list.text, *list.bytes = jsonspan.Pack(*list.text)
		if at := slices.Sorted(maps.Keys(*list.bytes)); len(at) > 0 && what == "" {
			what = fmt.Sprintf("the %s %.60q", list.name, (*list.bytes)[at[0]])
		}
	}
	if *cwd, *cwdBytes = jsonspan.PackOne(*cwd); *cwdBytes != nil {
		what = fmt.Sprintf("the directory %.60q", *cwdBytes)
	}
	return what
}

// unpack undoes pack. Its error is a *Error for bytes without a text.
func unpack(cwd *string, cwdBytes []byte, lists ...byteField) error {
	for _, list := range lists {
		if !jsonspan.Unpack(*list.text, *list.bytes) {
			return BadRequest("%s_bytes has an index that %s does not have", list.field, list.field)
		}
	}
	if len(cwdBytes) > 0 {
		*cwd = string(cwdBytes)
	}
	return nil
}

func (r *SpawnRequest) fields() (*string, *[]byte, []byteField) {
	return &r.Cwd, &r.CwdBytes, []byteField{{"argument", "command", &r.Command, &r.CommandBytes}, {"variable", "env", &r.Env, &r.EnvBytes}, {"variable", "set_env", &r.SetEnv, &r.SetEnvBytes}}
}

// Pack moves what is not UTF-8 into the fields for bytes. It returns the first such
// element in words, "" if there is none. The request's own slices stay as they are.
func (r *SpawnRequest) Pack() (what string) {
	cwd, bytes, lists := r.fields()
	return pack(cwd, bytes, lists...)
}

// Unpack undoes Pack. Its error is a *Error for bytes without a text.
func (r *SpawnRequest) Unpack() error {
	cwd, bytes, lists := r.fields()
	return unpack(cwd, *bytes, lists...)
}

// Pack is SpawnRequest.Pack.
func (r *SandboxRequest) Pack() (what string) {
	return pack(&r.Cwd, &r.CwdBytes, byteField{"argument", "command", &r.Command, &r.CommandBytes})
}

// Unpack is SpawnRequest.Unpack.
func (r *SandboxRequest) Unpack() error {
	return unpack(&r.Cwd, r.CwdBytes, byteField{"argument", "command", &r.Command, &r.CommandBytes})
}

// Pack is SpawnRequest.Pack.
func (r *MayRunRequest) Pack() (what string) { return (*SandboxRequest)(r).Pack() }

// Unpack is SpawnRequest.Unpack.
func (r *MayRunRequest) Unpack() error { return (*SandboxRequest)(r).Unpack() }

// NotText returns the first text in a request that is not UTF-8, in words, "" if there is
// none: package json would replace it.
func NotText(request any) string { return notText("", reflect.ValueOf(request)) }

func notText(name string, v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return strings.TrimSpace(fmt.Sprintf("%s %.60q", name, v.String()))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return notText(name, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Uint8 {
				break // encoded as base64, or JSON already
			}
			if what := notText(name, v.Index(i)); what != "" {
				return what
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.IsExported() {
				continue
			}
			if what := notText(tag, v.Field(i)); what != "" {
				return what
			}
		}
	}
	return ""
}
