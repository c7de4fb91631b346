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

// Arguments, variables and directories of Unix may be any bytes, and those of Windows may have half of a surrogate pair, which Go represents as
// bytes that are not UTF-8. JSON cannot carry either, and package json would replace them without a word.

// Pack moves what is not UTF-8 into the fields for bytes. It returns the first such element in words, "" if there is none. The request's own slices
// stay as they are.
func (r *SpawnRequest) Pack() (what string) {
	for _, list := range []struct {
		name  string
		text  *[]string
		bytes *map[int][]byte
	}{{"argument", &r.Command, &r.CommandBytes}, {"variable", &r.Env, &r.EnvBytes}, {"variable", &r.SetEnv, &r.SetEnvBytes}} {
		*list.text, *list.bytes = jsonspan.Pack(*list.text)
		if at := slices.Sorted(maps.Keys(*list.bytes)); len(at) > 0 && what == "" {
			what = fmt.Sprintf("the %s %.60q", list.name, (*list.bytes)[at[0]])
		}
	}
	if cwd, bytes := jsonspan.Pack([]string{r.Cwd}); bytes != nil {
		what = fmt.Sprintf("the directory %.60q", r.Cwd)
		r.Cwd, r.CwdBytes = cwd[0], bytes[0]
	}
	return what
}

// Unpack undoes Pack. Its error is a *Error for bytes without a text.
func (r *SpawnRequest) Unpack() error {
	for _, list := range []struct {
		name  string
		text  []string
		bytes map[int][]byte
	}{{"command", r.Command, r.CommandBytes}, {"env", r.Env, r.EnvBytes}, {"set_env", r.SetEnv, r.SetEnvBytes}} {
		if !jsonspan.Unpack(list.text, list.bytes) {
			return BadRequest("%s_bytes has an index that %s does not have", list.name, list.name)
		}
	}
	if len(r.CwdBytes) > 0 {
		r.Cwd = string(r.CwdBytes)
	}
	return nil
}

// NotText returns the first text in a request that is not UTF-8, in words, "" if there is none: package json would replace it.
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
